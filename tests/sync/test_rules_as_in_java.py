"""What the real MirrorSourceConnector, its policies and its filters say, and what ours say."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from flow_rules import rules

from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.kafka.cluster.acls import Acl
from sparkmirror.kafka.cluster.config_changes import ConfigChange
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.mirror.sync.topic_acls import remote_acl
from sparkmirror.mirror.sync.topic_properties import config_change, creation_configs
from sparkmirror.policy import DefaultReplicationPolicy, DefaultTopicFilter, IdentityReplicationPolicy, is_cycle

pytestmark = pytest.mark.full

ORACLE = Path(__file__).with_name("RuleOracle.java")
WORDS = [
    "us",
    "eu",
    "x",
    "topic",
    "heartbeats",
    "my-heartbeats",
    "mm2",
    "mm2-a",
    "__a",
    "checkpoints",
    "internal",
    "",
    ".",
]
SEPARATORS = [".", "_", "__", "-"]
FILTERS = [(".*", ""), ("", ""), ("topic|us.*", ""), (".*", r"mm2.*\.internal,__.*"), ("(?i)TOPIC,x.*", "xx")]
QUESTIONS = 3000


def asked(questions: Sequence[Sequence[object]]) -> list[list[str]]:
    lines = "".join("\t".join(map(str, question)) + "\n" for question in questions)
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", class_path(MIRROR_MAKER), str(ORACLE)]
    answered = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=False)
    assert answered.returncode == 0, answered.stderr
    return [line.split("\t") for line in answered.stdout.splitlines()]


def java_words(answer: Sequence[object]) -> list[str]:
    return ["null" if one is None else str(one).lower() if isinstance(one, bool) else str(one) for one in answer]


def test_topics() -> None:
    choose = random.Random(7)
    questions, ours = [], []
    for _ in range(QUESTIONS):
        kind, separator = choose.choice(["default", "identity"]), choose.choice(SEPARATORS)
        (include, exclude), heartbeats = choose.choice(FILTERS), choose.choice([True, False])
        between = separator if choose.random() < 0.8 else "."
        topic = between.join(choose.choices(WORDS, k=choose.randint(1, 4)))
        questions.append(("topic", kind, separator, include, exclude, str(heartbeats).lower(), topic))
        policy = (
            DefaultReplicationPolicy(separator) if kind == "default" else IdentityReplicationPolicy("us", separator)
        )
        topics = DefaultTopicFilter(include.split(",") if include else [], exclude.split(",") if exclude else [])
        own = rules(topics=topics, policy=policy, heartbeats=heartbeats)
        ours.append(
            java_words(
                [
                    own.remote_name(topic),
                    policy.topic_source(topic),
                    policy.upstream_topic(topic),
                    policy.original_topic(topic),
                    policy.is_heartbeats_topic(topic),
                    policy.is_checkpoints_topic(topic),
                    policy.is_mm2_internal_topic(topic),
                    policy.is_internal_topic(topic),
                    is_cycle(policy, topic, "eu"),
                    own.wanted(topic),
                ]
            )
        )
    theirs = asked(questions)
    assert [pair for pair in zip(questions, ours, theirs, strict=True) if pair[1] != pair[2]] == []
    assert {answer[-1] for answer in theirs} == {"true", "false"}


def test_acls() -> None:
    topics = ["t", "eu.t", "us.t", "secret", "*", "heartbeats", "__a", "mm2-a.internal"]
    cases = list(itertools.product(topics, range(2, 15), (2, 3)))
    ours = []
    for topic, operation, permission in cases:
        made = remote_acl(
            Acl(name=topic, principal="User:a", host="*", operation=operation, permission=permission), rules("secret")
        )
        ours.append(["none"] if made is None else java_words([made.name, made.operation, made.permission]))
    assert ours == asked([("acl", *case) for case in cases])


def test_properties() -> None:
    names = ["retention.ms", "min.insync.replicas", "message.timestamp.type", "follower.replication.throttled.replicas"]
    dynamic = ["DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"]
    kinds = [*dynamic, "STATIC_BROKER_CONFIG", "DEFAULT_CONFIG"]
    flags = [False, True]
    cases = list(itertools.product(names, kinds, flags, flags, ["source", "target"]))
    ours = []
    for name, source, read_only, sensitive, defaults_from in cases:
        own = rules(defaults_from=defaults_from)
        entry = ConfigEntry(name=name, value="v", source=source, read_only=read_only, sensitive=sensitive)
        created = creation_configs([entry], own) == {name: "v"}
        # At the target it is set to something else: it is touched if it is among what is kept.
        there = ConfigEntry(name=name, value="other", source="DYNAMIC_TOPIC_CONFIG", read_only=False, sensitive=False)
        touched = config_change("t", [entry], [there], own)[0] != ConfigChange("t")
        ours.append(java_words([created, touched]))
    questions = [("config", *java_words(case)) for case in cases]
    assert ours == asked(questions)
