"""Configuration files of every format, read into the typed model."""

from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.entries import Entry, read_entries
from sparkmirror.config.model import (
    DEFAULT_POLICY,
    IDENTITY_POLICY,
    ClusterConfig,
    FetchConfig,
    FlowConfig,
    LossPolicy,
    MirrorConfig,
    ProduceConfig,
)
from sparkmirror.config.properties import explain_entries, explain_mm2_properties, load_mm2_properties

__all__ = [
    "DEFAULT_POLICY",
    "IDENTITY_POLICY",
    "ClusterConfig",
    "EffectiveValue",
    "Entry",
    "FetchConfig",
    "FlowConfig",
    "LossPolicy",
    "MirrorConfig",
    "ProduceConfig",
    "explain_entries",
    "explain_mm2_properties",
    "load_mm2_properties",
    "read_entries",
]
