"""Write mm2.properties files, and Connect's files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from javaproperties import join_key_value, to_comment

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import RUNNING, ConnectCluster, Connector


def properties_text(entries: Iterable[Entry], path: str) -> str:
    """Return an mm2.properties file's text; each key's last entry counts."""
    last = {entry.key: entry.value for entry in entries}
    return _properties(last.items(), f"Made by sparkmirror convert of {Path(path).name}")


def connector_texts(clusters: Sequence[ConnectCluster]) -> dict[str, str]:
    """Return the files' texts by their path below a directory.

    Each flow has a directory, with a worker's file and the connectors' files.
    """
    texts = {}
    for cluster in clusters:
        directory = _name("-to-".join(cluster.connectors[0].flow)) if cluster.connectors else ""
        if not directory:
            continue
        if cluster.worker is not None:
            pairs = [(key, entry.value) for key, entry in cluster.worker.settings.items()]
            texts[f"{directory}/worker.properties"] = _properties(pairs, "Workers: connect-distributed.sh")
        for connector in cluster.connectors:
            text = json.dumps(_as_posted(connector), indent=2, ensure_ascii=False)
            texts[f"{directory}/{connector.role.word}.json"] = text + "\n"
    return texts


def _as_posted(connector: Connector) -> dict[str, object]:
    """Return a connector's configuration, as it is posted.

    A connector that is not to run has the state in which Connect creates it (KIP-980).
    """
    config: dict[str, object] = {key: entry.value for key, entry in connector.settings.items()}
    if connector.state == RUNNING:
        return config
    return {"name": connector.name, "initial_state": connector.state.upper(), "config": config}


def _properties(pairs: Iterable[tuple[str, str]], comment: str) -> str:
    return "\n".join([to_comment(comment), *_lines(pairs)]) + "\n"


def _lines(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for key, value in pairs:
        yield join_key_value(key, value, separator=" = ")


def _name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)
