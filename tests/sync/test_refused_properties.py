"""The properties that a topic is refused for are found, whatever the brokers' words are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.sync.refused_properties import (
    Answers,
    exclusion,
    property_refusal,
    refused_properties,
)

Judge = Callable[[dict[str, str]], bool]
CONFIGS = {"remote.storage.enable": "true", "local.retention.ms": "1", "remote.log.copy.disable": "true", "x": "1"}


def found(taken: Judge, configs: dict[str, str], code: int = ErrorCode.INVALID_CONFIG) -> tuple[str, ...]:
    """What a target that takes some combinations only is found to refuse; asked dry."""

    def dry(specs: list[NewTopicSpec]) -> Answers:
        return {spec.name: (0 if taken(dict(spec.configs)) else code, "no") for spec in specs}

    spec = NewTopicSpec("t", 1, 1, configs)
    return refused_properties([spec], dry([spec]), dry).get("t", ())


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (lambda c: c.get("remote.storage.enable") != "true", ("remote.storage.enable",)),
        (
            lambda c: "remote.storage.enable" not in c and "remote.log.copy.disable" not in c,
            ("remote.log.copy.disable", "remote.storage.enable"),
        ),
        # A property that needs another one is not to blame for that.
        (lambda c: "x" not in c and ("remote.log.copy.disable" not in c or "remote.storage.enable" in c), ("x",)),
        (lambda c: "x" not in c and "local.retention.ms" not in c, ("local.retention.ms", "x")),
        (lambda c: False, ()),
        (lambda c: True, ()),
    ],
)
@pytest.mark.parametrize("code", [ErrorCode.INVALID_CONFIG, ErrorCode.POLICY_VIOLATION])
def test_who_is_to_blame(taken: Judge, expected: tuple[str, ...], code: int) -> None:
    assert found(taken, CONFIGS, code) == expected


@given(bad=st.sets(st.sampled_from(sorted(CONFIGS))))
def test_each_that_is_refused_by_itself_is_found(bad: set[str]) -> None:
    assert found(lambda configs: not bad & configs.keys(), CONFIGS) == tuple(sorted(bad))


def test_other_refusals_are_not_looked_into() -> None:
    spec = NewTopicSpec("t", 1, 1, CONFIGS)
    assert refused_properties([spec], {"t": (38, "too few brokers")}, lambda _: {}) == {}


def test_topics_of_a_kind_are_asked_about_once() -> None:
    asked = []

    def dry(specs: list[NewTopicSpec]) -> Answers:
        asked.append(specs[0].name)
        return {
            spec.name: (ErrorCode.INVALID_CONFIG if "x" in spec.configs else 0, f"no: {spec.name}") for spec in specs
        }

    specs = [NewTopicSpec(f"t{number}", number, 1, {"x": "1"}) for number in range(1, 500)]
    answers = {spec.name: (ErrorCode.INVALID_CONFIG, f"no: {spec.name}") for spec in specs}
    assert refused_properties(specs, answers, dry) == {spec.name: ("x",) for spec in specs}
    assert asked == ["t1"]


def test_what_is_said() -> None:
    assert exclusion(["a", "b.c"]) == "config.properties.exclude = +a, +b.c"
    line = property_refusal(ErrorCode.INVALID_CONFIG, "Tiered Storage\nis disabled.", ("remote.storage.enable",))
    assert line == (
        "Tiered Storage is disabled; the source's remote.storage.enable is refused: "
        "write config.properties.exclude = +remote.storage.enable"
    )
