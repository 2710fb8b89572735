"""A mirror's configuration as typed values, and `load_mm2_properties`.

`sparkmirror run` reads by `config.formats`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

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


def load_mm2_properties(
    path: str, *, clusters: Sequence[str] = (), overrides: Mapping[str, str] = MappingProxyType({})
) -> MirrorConfig:
    """Read the file at `path` as MirrorMaker 2 would (`mm2.md` section 1.6).

    `clusters` leaves only the flows into the named targets, as `--clusters` does. `overrides` are keys and values that
    replace the file's. Raise `ConfigError` if the file can't be run, or can't be run as written.
    """
    # By name, when somebody asks: a Spark task needs no reader of files.
    read = import_module(f"{__name__}.properties").explain_mm2_properties
    config: MirrorConfig = read(path, clusters=clusters, overrides=overrides)[0]
    return config
