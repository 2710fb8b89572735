"""`sparkmirror migration new`: the written file is valid, and has exactly the topics and groups that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.migrate.clusters import commit, create, mirror

from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.migrate.file import Fence, MigrationFile, Policies, read_file
from sparkmirror.migrate.new_file import SourceFound, look, new_file, proposed_sets


def found(**changed: object) -> SourceFound:
    values: dict[str, object] = {
        "source": "A",
        "target": "B",
        "topics": ("audit", "orders", "payments", "stock"),
        "groups": {"billing": frozenset({"orders", "payments"}), "warehouse": frozenset({"stock"})},
        "authorizers": {"A": True, "B": True},
    }
    return SourceFound(**{**values, **changed})  # type: ignore[arg-type]


def written(tmp_path: Path, text: str) -> MigrationFile:
    path = tmp_path / "migration.yaml"
    path.write_text(text, "utf-8")
    return read_file(path)


# Groups with their topics, other ties, and the sets.
_SETS = [
    ({}, [], [("audit",), ("orders",), ("payments",), ("stock",)]),
    ({"g": "orders payments"}, [], [("audit",), ("orders", "payments"), ("stock",)]),
    ({"g": "payments stock", "h": "orders payments"}, [], [("audit",), ("orders", "payments", "stock")]),
    ({"g": "audit stock", "h": "orders payments"}, [], [("audit", "stock"), ("orders", "payments")]),
    ({"g": "audit stock", "h": "orders payments"}, ["payments audit"], [("audit", "orders", "payments", "stock")]),
    ({"g": "stock"}, ["orders other"], [("audit",), ("orders",), ("payments",), ("stock",)]),
    ({}, ["other"], [("audit",), ("orders",), ("payments",), ("stock",)]),
]


@pytest.mark.parametrize(("groups", "ties", "sets"), _SETS)
def test_sets(groups: dict[str, str], ties: list[str], sets: list[tuple[str, ...]]) -> None:
    one = found(groups={name: frozenset(topics.split()) for name, topics in groups.items()})
    proposed = proposed_sets(one, [each.split() for each in ties])
    assert [each.topics for each in proposed] == sets
    assert sorted(name for each in proposed for name in each.groups) == sorted(groups)


def test_names_that_yaml_would_read_as_something_else(tmp_path: Path) -> None:
    topics = ("--", "..x", "0x10", "1", "1e3", "_x", "a.b", "a_b", "null", "on", "yes")
    groups = {name: frozenset({"a.b"}) for name in ("no", "12", "a: b", "# c", 'q"\\', "tü", "  ", "[x]")}
    file = written(tmp_path, new_file("mm2: x.properties", found(topics=topics, groups=groups)))
    assert [topic for each in file.sets for topic in each.topics] == list(topics)
    assert {group for each in file.sets for group in each.groups} == set(groups)
    assert file.mirror == str(tmp_path / "mm2: x.properties")


@pytest.mark.parametrize(
    ("source", "target", "fence", "told"),
    [
        (True, True, Fence.ACL, "ACLs deny each principal that may write at A."),
        (True, False, Fence.ACL, "B has no authorizer: for the way back"),
        (None, True, Fence.ACL, "grant it DESCRIBE and ALTER on the cluster"),
        (False, True, Fence.NONE, "A has no authorizer, so nothing there can refuse producers"),
        (False, False, Fence.NONE, "A has no authorizer, so nothing there can refuse producers"),
    ],
)
def test_fence(tmp_path: Path, source: bool | None, target: bool, fence: Fence, told: str) -> None:
    text = new_file("mm2.properties", found(authorizers={"A": source, "B": target}))
    assert written(tmp_path, text).fence is fence
    assert told in text


def test_comments(tmp_path: Path) -> None:
    text = new_file(
        "mm2.properties",
        found(left_out={"connect-s3": frozenset({"orders"})}, unread={"secret": "GROUP_AUTHORIZATION_FAILED"}),
        flow="A->B",
    )
    assert "# group connect-s3 reads here, too, but the mirror's groups or groups.exclude leaves it out" in text
    assert text.count("connect-s3") == 1
    assert "#   secret: GROUP_AUTHORIZATION_FAILED" in text
    assert all(len(line) <= 120 for line in text.splitlines())
    file = written(tmp_path, text)
    assert file.flow == "A->B"


def test_the_policies_in_comments_are_the_defaults(tmp_path: Path) -> None:
    text = new_file("mm2.properties", found())
    head, _, policies = text.partition("# policies:\n")
    bare = "".join(f"{line.removeprefix('#')}\n" for line in policies.splitlines())
    file = written(tmp_path, f"{head}policies:\n{bare}")
    assert file.policies == Policies()
    assert policies.count("\n") == 2 * len(Policies.model_fields)


@pytest.mark.broker
def test_what_the_clusters_show(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    names = [f"{topic_name}-{each}" for each in ("audit", "orders", "payments", "stock")]
    create(source_cluster, *(NewTopicSpec(name, 1, 1) for name in (*names, f"not-{topic_name}")))
    _, orders, payments, stock = names
    commit(
        source_cluster,
        {
            f"{topic_name}-billing": [orders, payments, f"not-{topic_name}"],
            f"{topic_name}-warehouse": [stock],
            f"connect-{topic_name}": [stock],
            f"{topic_name}-elsewhere": [f"not-{topic_name}"],
        },
    )
    path, flow = mirror(tmp_path, source_cluster, target_cluster, f"{topic_name}-.*")
    one = look(flow)
    assert one.authorizers == {"A": False, "B": False}
    assert one.left_out == {f"connect-{topic_name}": {stock}}
    file = written(tmp_path, new_file(Path(path).name, one))
    assert file.mirror == path
    assert file.fence is Fence.NONE
    assert [(each.topics, each.groups) for each in file.sets] == [
        ((names[0],), ()),
        ((orders, payments), (f"{topic_name}-billing",)),
        ((stock,), (f"{topic_name}-warehouse",)),
    ]


@pytest.mark.broker
def test_clusters_with_an_authorizer(
    guarded_pair: tuple[KafkaCluster, KafkaCluster], topic_name: str, tmp_path: Path
) -> None:
    create(guarded_pair[0], NewTopicSpec(topic_name, 1, 1))
    _, flow = mirror(tmp_path, *guarded_pair, topic_name)
    one = look(flow)
    assert one.authorizers == {"A": True, "B": True}
    assert written(tmp_path, new_file("mm2.properties", one)).fence is Fence.ACL


@pytest.mark.broker
def test_a_flow_without_topics(source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path) -> None:
    _, flow = mirror(tmp_path, source_cluster, target_cluster, "no-such-topic")
    with pytest.raises(ConfigError, match="flow A->B copies none of the topics that cluster A has now"):
        look(flow)
