"""Read all formats into the model; the files' contents tell the format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparkmirror.config import MirrorConfig
from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.formats.choice import form_of, open_files
from sparkmirror.config.formats.connect_files import ConnectCluster, ConnectorRole
from sparkmirror.config.formats.connector_files import read_connect
from sparkmirror.config.formats.files import File
from sparkmirror.config.formats.fill import Filling
from sparkmirror.config.formats.merge import as_mm2
from sparkmirror.config.formats.missing_brokers import with_brokers
from sparkmirror.config.formats.reading import Reading
from sparkmirror.config.formats.secrets import MountedKeys
from sparkmirror.config.formats.strimzi import read_strimzi
from sparkmirror.config.formats.unknown import as_not_known, without_unknown
from sparkmirror.config.formats.wording import in_order, places, wording_of
from sparkmirror.config.properties import explain_entries
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes

SECRETS_VARIABLE = "SPARKMIRROR_SECRETS"
"""Environment variable for the Secrets' directory, if no option names it."""


def read(
    paths: Sequence[str],
    secrets: str | None = None,
    *,
    lone_checkpoints: bool = False,
    partly: bool = False,
    without_secrets: bool = False,
    sealed: bool = False,
    filling: Filling | None = None,
) -> Reading:
    """Read files in a single format, or directories with such files.

    Raise `ConfigError` for all mistakes. `lone_checkpoints`: a checkpoint connector may be a flow's only connector, as
    it always may in a resource. `partly`: a wrong setting or file is left out, or replaced by a stand-in, and the
    reading has the mistakes; an error is raised only if nothing can be read. `without_secrets`: missing Secrets' values
    are unknown, and notes say so. `sealed`: no reference to a config provider is resolved. `filling` is put over each
    key and value.
    """
    form, files, wrong = open_files(paths, filling)
    if not partly:
        wrong.stop()
    options = _Options(
        mounted=secrets or os.environ.get(SECRETS_VARIABLE),
        lone_checkpoints=lone_checkpoints,
        partly=partly,
        without_secrets=without_secrets,
        sealed=sealed,
    )
    return _reading(paths[0] if len(paths) == 1 else ", ".join(paths), form, files, wrong, options)


def read_file(file: File, mounted: MountedKeys | None = None, *, partly: bool = False) -> Reading:
    """Read a file in memory as `read` does, without resolving any reference."""
    return _reading(
        file.path, form_of([file]), [file], Mistakes(), _Options(mounted=mounted, partly=partly, sealed=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Options for `read`."""

    mounted: str | MountedKeys | None
    lone_checkpoints: bool = False
    partly: bool = False
    without_secrets: bool = False
    sealed: bool = False


def _reading(shown: str, form: str, files: list[File], wrong: Mistakes, options: _Options) -> Reading:
    sealed, partly = options.sealed, options.partly
    if form == "properties":
        return Reading(path=shown, format=form, entries=files[0].entries, wrong=wrong.all, sealed=sealed)
    mistakes = Mistakes()
    if form == "strimzi":
        strimzi = read_strimzi(files, options.mounted, mistakes, without_secrets=options.without_secrets)
        entries, notes = as_mm2(shown, strimzi.clusters, lone_checkpoints=True, mistakes=mistakes)
        reading = Reading(
            path=shown,
            format=form,
            entries=(*entries, *strimzi.providers),
            notes=(*strimzi.notes, *notes),
            connect=strimzi.clusters,
            resources=strimzi.resources,
            documents=strimzi.documents,
            fields=strimzi.fields,
        )
    else:
        clusters, told = read_connect(files, wrong)
        if not partly:
            wrong.stop()
        entries, notes = as_mm2(shown, clusters, lone_checkpoints=options.lone_checkpoints, mistakes=mistakes)
        entries = with_brokers(entries, clusters, mistakes)
        reading = Reading(path=shown, format=form, entries=tuple(entries), notes=(*told, *notes), connect=clusters)
    reading = replace(reading, mistakes=mistakes.all, wrong=wrong.all, sealed=sealed)
    if reading.mistakes and not partly:
        model_of(reading)  # raises these mistakes, and all others
    return reading


def model_of(
    reading: Reading, *, clusters: Sequence[str] = (), overrides: Mapping[str, str] | None = None
) -> tuple[MirrorConfig, tuple[EffectiveValue, ...]]:
    """Return a reading's model, and each value's origin.

    Raise `ConfigError`.
    """
    wording = wording_of(reading)
    mistakes = Mistakes()
    for mistake in reading.mistakes:
        mistakes.add(mistake)
    if not reading.entries or (reading.connect and wording is None):
        mistakes.stop()  # no setting is left to check
    notes = [str(note) for note in reading.notes if note.kind != "not needed"]
    entries = list(without_unknown(reading.entries)) if reading.format == "strimzi" else reading.entries
    try:
        config, values = explain_entries(
            reading.path,
            entries,
            clusters=clusters,
            overrides=overrides or {},
            notes=notes,
            sealed=reading.sealed,
        )
    except ConfigError as error:
        mistakes.add(wording.error(error) if wording else error)
    if mistakes.all:
        raise in_order(mistakes.all)
    if wording is None:
        return config, values
    config = _by_connectors(config, reading.connect)
    written = places(reading.entries)
    warnings = tuple(dict.fromkeys(map(wording.warning, config.warnings)))
    values = tuple(wording.value(value, written) for value in as_not_known(reading.entries, values))
    return config.model_copy(update={"warnings": warnings}), values


def _by_connectors(config: MirrorConfig, clusters: Sequence[ConnectCluster]) -> MirrorConfig:
    """Give each flow the name of its source connector, and tell whether it copies.

    A real worker finds the connector's progress by this name. A flow whose source connector is missing, or is not to
    run, copies nothing.
    """
    sources = {
        connector.flow: connector
        for cluster in clusters
        for connector in cluster.connectors
        if connector.role is ConnectorRole.SOURCE
    }
    flows = []
    for flow in config.flows:
        source = sources.get((flow.source.alias, flow.target.alias))
        update: dict[str, object] = {"copies": source is not None and source.wants()}
        if source is not None:
            update["connect"] = flow.connect.model_copy(update={"connector": source.name})
        flows.append(flow.model_copy(update=update))
    return config.model_copy(update={"flows": tuple(flows)})
