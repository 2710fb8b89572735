"""Files full of keys, many in wrong places: what counts is what counts for the real MirrorMaker 2's classes."""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from pathlib import Path

import javaproperties
import pytest

from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.originals import connector_originals
from sparkmirror.config.properties import explain_mm2_properties
from sparkmirror.config.setting import KeyScope, Setting
from sparkmirror.config.settings import FETCH_SETTINGS, FLOW_SETTINGS, PRODUCE_SETTINGS
from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.values import Boolean, Choice, ClassName, Integer, Names

FILES = 25
KEYS = 120
OURS = "sparkmirror."
SETTINGS = [
    setting
    for setting in (*FLOW_SETTINGS, *DUTY_SETTINGS, *FETCH_SETTINGS, *PRODUCE_SETTINGS)
    if not setting.name.startswith(OURS)
]
PREFIXES = [
    "",
    *(f"{alias}.{role}" for alias in ("us", "eu", "us->eu", "eu->us") for role in ("", "consumer.", "producer.")),
    *(f"us->eu.{role}" for role in ("source.consumer.", "target.consumer.", "producer.override.", "source.cluster.")),
    *("consumer.", "producer.", "source.consumer.", "producer.override."),
]
DERIVED = {"offset.storage.topic", "client.id"}
"""Where nothing is given it makes them up, of the pair's and a connector's name; so do we, in words of our own."""

BUFFERS = {"receive.buffer.bytes", "send.buffer.bytes"}
"""Ours differ from Kafka's in their defaults, and say so."""


def value(setting: Setting, dice: random.Random) -> str:
    match setting.kind:
        case Boolean():
            return dice.choice(["true", "false", "TRUE", " false "])
        case Choice(options=options):
            return dice.choice(options)
        case Integer(low=low, high=high, also=also):
            return str(dice.choice([low, min(high, low + dice.randrange(1000)), low if also is None else also]))
        case ClassName(known=known):
            return dice.choice([name for name in known if name.startswith("org.apache.")])
        case Names():
            return dice.choice([",", " , "]).join(dice.choices(["a", "b.*", "c"], k=dice.randrange(4)))
    return "".join(dice.choices("ab", k=1 + dice.randrange(3)))


def write(path: Path, dice: random.Random) -> None:
    lines = [
        "plugin.discovery = service_load",
        "clusters = us, eu",
        "us.bootstrap.servers = u:1",
        "eu.bootstrap.servers = e:1",
        "us->eu.enabled = true",
    ]
    lines += [f"{dice.choice(['', 'us->eu.', 'eu->us.'])}emit.heartbeats.enabled = {dice.choice(['true', 'false'])}"]
    for setting in dice.choices(SETTINGS, k=KEYS):
        own = [key.removesuffix(setting.name) for key in setting.place.keys(setting.name, "us", "eu")]
        prefix = dice.choice(own if dice.random() < 0.6 else PREFIXES)
        lines.append(f"{prefix}{setting.name} = {value(setting, dice)}")
    path.write_text("\n".join(lines))


def real_value(setting: Setting, real: dict[tuple[str, str], str]) -> str | None:
    """What the real one uses; None: its clients' or workers' default."""
    name = setting.name
    match setting.place:
        case KeyScope.CONNECTOR:
            return real["connector", name]
        case KeyScope.PAIR:
            return real.get(("original", name))
        case KeyScope.CONSUMER:
            return real.get(("consumer", name))
        case KeyScope.PRODUCER:
            return real.get(("original", f"producer.override.{name}"), real.get(("worker", f"producer.{name}")))
    return real.get(("worker", name))


@pytest.mark.full
def test_as_the_real_one(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.properties" for number in range(FILES)]
    for number, path in enumerate(paths):
        write(path, random.Random(number))
    oracle = str(Path(__file__).with_name("ConfigOracle.java"))
    command = [java(), "-cp", class_path(MIRROR_MAKER), oracle, *map(str, paths)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    real: dict[tuple[str, str], dict[tuple[str, str], str]] = defaultdict(dict)
    for line in told.splitlines():
        if line.count("\t") == 4:
            file, pair, kind, key, text = line.split("\t")
            real[file, pair][kind, key] = text
    compared = 0
    for path in paths:
        config, found = explain_mm2_properties(str(path))
        pairs = {flow.name for flow in (*config.flows, *config.beats)}
        assert pairs == {pair for file, pair in real if file == str(path)}
        ours = {(value.flow, value.key): value for value in found}
        raw = javaproperties.loads(path.read_text())
        for pair in pairs:
            source, target = pair.split("->")
            originals = connector_originals(raw, source, target)
            assert {key: text.strip() for key, text in originals.items()} == {
                key: text for (kind, key), text in real[str(path), pair].items() if kind == "original"
            }
            for setting in SETTINGS:
                row = ours.get((pair, setting.place.general(setting.name, source, target)))
                if row is None:
                    assert pair == "eu->us", "a pair that copies nothing has few settings"
                    continue
                expected = real_value(setting, real[str(path), pair])
                if expected is None or (row.where == "default" and setting.name in DERIVED):
                    assert row.where == "default", row
                elif setting.name == "client.id":  # it puts pair and connector behind it
                    assert row.value == expected.split("|")[0], row
                elif row.where != "default" or setting.name not in BUFFERS:
                    assert row.value == expected, row
                    compared += 1
    assert compared > FILES * len(SETTINGS) / 2
