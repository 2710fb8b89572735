"""Every configuration format in, one typed model out."""

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
from sparkmirror.config.properties import load_mm2_properties

__all__ = [
    "DEFAULT_POLICY",
    "IDENTITY_POLICY",
    "ClusterConfig",
    "FetchConfig",
    "FlowConfig",
    "LossPolicy",
    "MirrorConfig",
    "ProduceConfig",
    "load_mm2_properties",
]
