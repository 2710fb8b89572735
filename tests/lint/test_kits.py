"""What lint says of the files that migration kits hold: little, the most important first, and nothing left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.kit_connectors import aws_kit
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config.formats import read
from sparkmirror.lint import check, folded

MOST = 10


def write(directory: Path, auth: str) -> Path:
    for name, config in aws_kit().items():
        if f"-{auth}-" in name:
            (directory / f"{name}.json").write_text(json.dumps(config, indent=1))
    return directory


def shown(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CliRunner().invoke(app, ["lint", str(path), "-o", "json"]).stdout)
    return found


@pytest.mark.parametrize("auth", ["iam", "mtls", "no", "sasl"])
def test_few_findings_the_most_important_first(tmp_path: Path, auth: str) -> None:
    found = shown(write(tmp_path, auth))
    assert len(found) <= MOST
    severities = [one["severity"] for one in found]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert len({(one["rule"], one["fix"]) for one in found}) == len(found)


def test_what_costs_most_comes_first(tmp_path: Path) -> None:
    first = shown(write(tmp_path, "iam"))[0]
    assert (first["rule"], first["key"]) == ("recompresses", "producer.override.compression.type")
    assert "leave" in first["fix"] or "take it out" in first["fix"]


def test_no_place_is_lost(tmp_path: Path) -> None:
    """Each finding of each place is in the JSON, with its own words, and its key in the text."""
    path = write(tmp_path, "iam")
    every = check(read([str(path)]))
    places = {
        (one["rule"], place["file"], place["line"], place["key"], place["what"])
        for one in shown(path)
        for place in one["places"]
    }
    assert places == {(one.rule, one.file, one.line, one.key, one.what) for one in every}
    text = CliRunner().invoke(app, ["lint", str(path)]).stdout
    for one in every:
        assert one.key in text
    assert len(text.splitlines()) < 50


def test_no_key_is_told_of_by_two_rules_but_for_its_value(tmp_path: Path) -> None:
    every = check(read([str(write(tmp_path, "iam"))]))
    about_keys = [(one.file, one.line) for one in every if one.rule != "digit-lost"]
    assert len(about_keys) == len(set(about_keys))


def test_a_folded_finding_reads_well(tmp_path: Path) -> None:
    every = check(read([str(write(tmp_path, "iam"))]))
    (broker_key,) = [one for one in folded(every) if one.rule == "broker-key"]
    first, keys, *_ = broker_key.lines()
    assert first == "is a broker's setting; clients don't know it"
    assert keys.endswith(
        "mm2-msc-iam-auth.json: source.cluster.message.max.bytes (line 36),"
        " target.cluster.message.max.bytes (line 43), producer.override.message.max.bytes (line 50)"
    )


def test_remedies_followed_in_all_three_files(tmp_path: Path) -> None:
    """To the letter; what is left is worth knowing, and no more."""
    kit = {name: dict(config) for name, config in aws_kit().items() if "-iam-" in name}
    by_file = {str(tmp_path / f"{name}.json"): config for name, config in kit.items()}
    checkpoints = next(config for name, config in kit.items() if "-cpc-" in name)
    for one in shown(write(tmp_path, "iam")):
        for place in one["places"]:
            config, key = by_file[place["file"]], place["key"]
            if one["fix"].startswith("take it out"):
                config.pop(key, None)
            elif one["fix"].startswith("write consumer."):
                name = key.removeprefix("producer.override.").removeprefix("source.cluster.")
                config["consumer." + name.removeprefix("target.cluster.")] = config.pop(key)
            elif one["rule"] == "misplaced":
                checkpoints[key] = config.pop(key)
            elif one["rule"] == "digit-lost" and key in config:
                config[key] = "524288"
            elif one["rule"] == "amazons-policy":
                for connector in kit.values():
                    if "replication.policy.class" in connector:
                        connector["replication.policy.class"] = one["fix"].partition(" ")[0]
    for file, config in by_file.items():
        Path(file).write_text(json.dumps(config, indent=1))
    assert [one["rule"] for one in shown(tmp_path)] == []
