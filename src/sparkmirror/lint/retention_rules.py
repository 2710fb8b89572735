"""Rule on copies that lose kept records, for `lint --connect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot
from sparkmirror.lint.probe import FlowProbe
from sparkmirror.mirror.sync.retention import shorter
from sparkmirror.mirror.sync.topic_properties import STATIC


def copy_keeps_less(probe: FlowProbe) -> Iterator[Spot]:
    flow, target = probe.flow.name, probe.target
    for name, remote in probe.names.items():
        entries = probe.source.configs.get(name, {})
        here, there = _values(entries), _values(target.configs.get(remote, {}))
        if remote in probe.specs:
            there = {**target.retention, **probe.specs[remote].configs}
        if here and there and (less := shorter(here, there)):
            fix = f"set the property at the source's topic {name}"
            if not any(key in entries and entries[key].source == STATIC for key in less):
                fix += f", or write {flow}.use.defaults.from = source"
            detail = f"at {target.cluster.alias} {', '.join(less.values())}"
            yield Spot(path=f"flow {flow}", line=0, key=name, detail=detail, fix=fix)


def _values(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    return {entry.name: entry.value for entry in entries.values() if entry.value is not None}


RETENTION_RULES = (
    LintRule(
        name="copy-keeps-less",
        severity=LintSeverity.WARNING,
        what="the target deletes copied records that the source keeps",
        effect="the copy loses records, some of them soon after they were copied; MirrorMaker 2's copies do so, too",
        fix="set the property at the source's topic, from where the mirror brings it to the copy, or let copies have "
        "the source's defaults by `SOURCE->TARGET.use.defaults.from = source`, but for values from the source brokers' "
        "files",
        look=copy_keeps_less,
    ),
)
