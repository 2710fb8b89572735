"""What a filter or policy in Python is given: MirrorMaker 2's own connector configuration, without secrets.

`originals_expected.properties` is what `MirrorMakerConfig.connectorBaseConfig` of Kafka 4.3.1 makes of
`originals.properties` for `us->eu`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import javaproperties
import pytest

from sparkmirror.config import MirrorConfig
from sparkmirror.config.originals import connector_originals

Load = Callable[..., MirrorConfig]
HERE = Path(__file__).parent


def read(name: str) -> dict[str, str]:
    return dict(javaproperties.loads((HERE / name).read_text()))


def test_as_the_real_one() -> None:
    assert connector_originals(read("originals.properties"), "us", "eu") == read("originals_expected.properties")


@pytest.mark.parametrize(
    "key",
    ["topic.filter.class", "group.filter.class", "config.property.filter.class", "replication.policy.class"],
)
@pytest.mark.parametrize("place", ["", "us->eu."])
def test_only_a_python_class_gets_them(load: Load, key: str, place: str) -> None:
    lines = "topics = a\nmy.key = 1\nus->eu.my.own = 2"
    assert load(lines).flows[0].originals == {}
    originals = load(f"{lines}\n{place}{key} = my.module:Mine").flows[0].originals
    assert (originals["topics"], originals["my.own"], originals[key]) == ("a", "2", "my.module:Mine")
    assert (originals["source.cluster.alias"], originals["target.cluster.alias"]) == ("us", "eu")
    assert "my.key" not in originals, "MirrorMaker 2 drops it, too"


def test_keys_of_its_own_are_no_mistakes(load: Load) -> None:
    lines = "us->eu.my.own = 2\nreplication.policy.mine = 3\nmy.key = 1"
    assert [text.split(": ")[1] for text in load(lines).warnings] == [
        "us->eu.my.own",
        "replication.policy.mine",
        "my.key",
    ]
    with_class = load(lines + "\nus->eu.topic.filter.class = my:Filter")
    assert [text.split(": ")[1] for text in with_class.warnings] == ["my.key"]


def test_no_secret_is_handed_over(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", "hunter2")
    secrets = ("ssl.key.password", "us.ssl.keystore.key", "sasl.jaas.config", "us->eu.my.client.secret", "eu.api.Token")
    lines = "".join(f"{key} = hunter2\n" for key in secrets) + (
        "topic.filter.class = my:Filter\nus->eu.my.url = ${env:URL}\nconfig.providers = env\n"
        "config.providers.env.class = EnvVarConfigProvider\n"
    )
    originals = load(lines).flows[0].originals
    assert "hunter2" not in str(originals)
    assert "my.url" not in originals
    assert originals["topic.filter.class"] == "my:Filter"
