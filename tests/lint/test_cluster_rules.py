"""Rules about clusters: each finds its trouble in what the clusters say, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import ConnectStorage, LegacyConfig, TopicSyncConfig, TransformQuery
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.query_places import SINK_TOPIC, plans_topic
from sparkmirror.kafka.cluster.acls import ALL, ALLOW, DENY, LITERAL, PREFIXED, READ, WRITE, Acl
from sparkmirror.kafka.cluster.append_check import AppendCheck, AppendVerdict, Trial
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.lint import probe as probing
from sparkmirror.lint.check import CONNECTED_RULES, compare
from sparkmirror.lint.probe import FlowProbe, ProbedCluster, timestamp_limit
from sparkmirror.mirror.sync.pattern_matches import Matches
from sparkmirror.snapshot.unmatched_pattern import UnmatchedPattern
from sparkmirror.veil import NAMES_VEIL

HOUR_MS = 3_600_000
CREATE, ALTER, ALTER_CONFIGS = 5, 7, 11


def topic(name: str, partitions: int = 1, replicas: int = 3) -> TopicDescription:
    nodes = tuple(range(replicas))
    described = tuple(
        PartitionDescription(partition=number, leader=0, leader_epoch=0, replicas=nodes, in_sync=nodes)
        for number in range(partitions)
    )
    return TopicDescription(name, bytes(16), described)


def entry(name: str, value: str, source: str = "DEFAULT_CONFIG") -> ConfigEntry:
    return ConfigEntry(name=name, value=value, source=source, read_only=False, sensitive=False)


def healthy() -> FlowProbe:
    """A flow of one topic, whose copy is there, and nothing is wrong."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in ("us", "eu"))
    flow = FlowConfig(source=source, target=target)
    everything = frozenset(
        ("READ", "WRITE", "CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE")
    )
    large = {"max.message.bytes": entry("max.message.bytes", "1048588")}
    least = {"min.insync.replicas": entry("min.insync.replicas", "2")}
    here = ProbedCluster(
        cluster=source,
        cluster_id="one",
        brokers=3,
        operations=everything,
        topics={"t": topic("t")},
        configs={"t": large},
        topic_operations={"t": everything},
        pattern_operations={".*": everything},
        limits={"message.max.bytes": 1_048_588},
        skew_s=0.1,
    )
    there = ProbedCluster(
        cluster=target,
        cluster_id="other",
        brokers=3,
        operations=everything,
        topics={"us.t": topic("us.t")},
        configs={"us.t": large | least},
        topic_operations={"us.t": everything},
        group_operations={"us-mm2": everything},
        pattern_operations={".*": everything},
        limits={"message.max.bytes": 1_048_588},
        skew_s=-0.1,
        refusals={"us.new": (0, "")},
    )
    return FlowProbe(flow=flow, source=here, target=there, names={"t": "us.t"})


Change = Callable[[FlowProbe], object]


def refuse(name: str, code: int, factor: int = 5, side: str = "target") -> Change:
    def change(probe: FlowProbe) -> None:
        getattr(probe, side).refusals[name] = (code, "")
        probe.specs[name] = NewTopicSpec(name, 1, factor)
        probe.factor_keys[name] = "replication.factor"

    return change


def lose(side: str, operation: str) -> Change:
    def change(probe: FlowProbe) -> None:
        one: ProbedCluster = getattr(probe, side)
        one.topic_operations = {name: had - {operation} for name, had in one.topic_operations.items()}

    return change


def own_topic(side: str, *operations: str) -> Change:
    """One that is there, and what we may do with it."""

    def change(probe: FlowProbe) -> None:
        one: ProbedCluster = getattr(probe, side)
        probe.internal["own"] = one
        one.topic_operations["own"] = frozenset(operations)

    return change


def miss(name: str, *, side: str = "target", own: bool = False, sees: bool = True) -> Change:
    """One that would be created; and whether we might see it then."""

    def change(probe: FlowProbe) -> None:
        one: ProbedCluster = getattr(probe, side)
        refuse(name, 0, side=side)(probe)
        if own:
            probe.internal[name] = one
        else:
            probe.names["new"] = name
            probe.source.topics["new"] = topic("new")
            probe.source.topic_operations["new"] = probe.source.topic_operations["t"]
        if not sees:
            one.topic_operations[name] = frozenset()

    return change


def lose_group(side: str, group: str) -> Change:
    def change(probe: FlowProbe) -> None:
        groups = probe.flow.group.model_copy(update={"groups": ("billing", "ship.*")})
        probe.flow = probe.flow.model_copy(update={"group": groups})
        getattr(probe, side).group_operations[group] = frozenset()

    return change


def keeps(here: dict[str, str], there: dict[str, str]) -> Change:
    """Retention of the topic, and of its copy."""

    def change(probe: FlowProbe) -> None:
        probe.source.configs["t"].update({name: entry(name, value) for name, value in here.items()})
        probe.target.configs["us.t"].update({name: entry(name, value) for name, value in there.items()})

    return change


def new_copy_keeps(brokers_ms: str) -> Change:
    """The copy is not there yet, and the target's brokers keep new topics so long."""

    def change(probe: FlowProbe) -> None:
        keeps({"retention.ms": "604800000"}, {})(probe)
        probe.target.retention["retention.ms"] = brokers_ms
        probe.specs["us.t"] = NewTopicSpec("us.t", 1, 3)

    return change


def own_settings(replicas: int, name: str = segments_topic("us"), **settings: str) -> Change:
    """An own topic as somebody, or the cluster's defaults, made it."""

    def change(probe: FlowProbe) -> None:
        probe.target.topics[name] = topic(name, replicas=replicas)
        probe.target.configs[name] = {
            key: entry(key, value)
            for key, value in (
                ("unclean.leader.election.enable", settings.get("unclean", "false")),
                ("min.insync.replicas", settings.get("least", "2")),
            )
        }

    return change


def lose_pattern(side: str, *operations: str) -> Change:
    return lambda probe: getattr(probe, side).pattern_operations.update({".*": frozenset(operations)})


def appends(*checks: Trial) -> Change:
    return lambda probe: setattr(probe.target, "appends", AppendCheck(checks))


def registry(remote: str) -> Change:
    """A schema registry's topic, and what its copy is called; nothing: there is none."""

    def change(probe: FlowProbe) -> None:
        probe.source.topics["_schemas"] = topic("_schemas")
        probe.source.topic_operations["_schemas"] = probe.source.topic_operations["t"]
        if remote:
            probe.names["_schemas"] = remote

    return change


BAD: list[tuple[str, Change, str]] = [
    ("unreachable", lambda p: setattr(p.target, "error", "no broker answers"), "no broker answers"),
    ("one-cluster", lambda p: setattr(p.target, "cluster_id", "one"), "eu and us are the same cluster"),
    ("forbidden-at-source", lose("source", "READ"), "READ on topic t"),
    ("forbidden-at-source", lose("source", "DESCRIBE_CONFIGS"), "DESCRIBE_CONFIGS on topic t"),
    (
        "forbidden-at-source",
        lambda p: setattr(p.source, "operations", frozenset()),
        "DESCRIBE on the cluster, to read ACLs and groups",
    ),
    ("forbidden-at-target", lose("target", "WRITE"), "WRITE on topic us.t"),
    ("forbidden-at-target", lose("target", "ALTER_CONFIGS"), "ALTER_CONFIGS on topic us.t"),
    ("forbidden-at-target", refuse("us.new", 29), "CREATE on topic us.new"),
    ("forbidden-at-source", own_topic("source", "DESCRIBE"), "WRITE on topic own"),
    ("forbidden-at-source", refuse("own", 29, side="source"), "CREATE on topic own"),
    ("forbidden-at-source", lose_group("source", "billing"), "DESCRIBE on group billing"),
    ("forbidden-at-target", own_topic("target", "WRITE"), "READ on topic own"),
    ("forbidden-at-target", lose_group("target", "us-mm2"), "READ on group us-mm2"),
    ("forbidden-at-target", lose_group("target", "billing"), "READ on group billing"),
    ("forbidden-at-target", miss("us.new", sees=False), "WRITE on topic us.new"),
    ("rights-unknown", miss("us.new"), "ALTER, ALTER_CONFIGS, DESCRIBE_CONFIGS, READ, WRITE on topic us.new"),
    ("rights-unknown", miss("own", side="source", own=True), "READ, WRITE on topic own"),
    ("sinks-excluded", lambda p: setattr(p, "excluded_sinks", ("connect-s3",)), "connect-s3"),
    ("groups-unseen", lose_pattern("source"), "DESCRIBE on groups like .*"),
    ("groups-unseen", lose_pattern("target", "DESCRIBE"), "READ on groups like .*"),
    ("too-old-brokers", lambda p: setattr(p.source, "too_old", ("broker 1: it is",)), "broker 1: it is"),
    ("weaker-source", lambda p: setattr(p.source, "weaker", ("its topics have no ids",)), "its topics have no ids"),
    (
        "forbidden-at-target",
        lambda p: setattr(p.target, "operations", frozenset()),
        "ALTER on the cluster, to add ACLs",
    ),
    ("factor-too-high", refuse("us.new", 38), "5 for us.new, and 3 brokers"),
    ("factor-too-high", refuse("own", 38, side="source"), "5 for own, and 3 brokers"),
    ("not-created", refuse("us.new", 44), "create.topic.policy"),
    (
        "copied-by-another",
        lambda p: p.copiers.update({"us.t": "asia->eu"}),
        "take the topic out of us->eu.topics, or use DefaultReplicationPolicy in us->eu",
    ),
    (
        "unknown-properties",
        lambda p: p.unknown_properties.update({"us.t": ("new.one",), "us.new": ("new.one",)}),
        "us.new, us.t",
    ),
    ("own-topics-unsafe", own_settings(2, unclean="true", least="1"), "unclean.leader.election.enable=true"),
    ("own-topics-unsafe", own_settings(3, least="1"), "min.insync.replicas=1"),
    ("own-topics-unsafe", own_settings(3, plans_topic("us"), least="1"), "min.insync.replicas=1"),
    ("own-topics-unsafe", own_settings(3, SINK_TOPIC, least="1"), "min.insync.replicas=1"),
    ("too-few-replicas", lambda p: p.target.topics.update({"us.t": topic("us.t", replicas=1)}), "2 wanted, 1 there"),
    (
        "message-too-large",
        lambda p: p.source.configs["t"].update({"max.message.bytes": entry("max.message.bytes", "9999999")}),
        "up to 9,999,999 bytes at us, 1,048,588 at the target",
    ),
    (
        "copy-keeps-less",
        keeps({"retention.ms": "604800000"}, {"retention.ms": "28800000"}),
        "at eu retention.ms is 8 h (7 d",
    ),
    ("copy-keeps-less", new_copy_keeps("3600000"), "at eu retention.ms is 1 h (7 d at the source)"),
    ("too-old", lambda p: p.too_old.update({"t": 48 * HOUR_MS}), "older than 48 h"),
    ("clock-skew", lambda p: setattr(p.source, "skew_s", -60.0), "60 s behind this machine's"),
    ("clock-skew", lambda p: setattr(p.target, "skew_s", 7.0), "7 s ahead of this machine's"),
    ("clock-unknown", lambda p: setattr(p.target, "skew_s", None), ""),
    ("limits-unknown", lambda p: p.target.limits.clear(), ""),
    (
        "nothing-to-copy",
        lambda p: setattr(p, "topic_matches", Matches("no topic of us matches topics = ordrs")),
        "no topic of us matches topics = ordrs",
    ),
    ("no-group", lambda p: setattr(p, "group_matches", Matches("no consumer group of us")), "no consumer group of us"),
    (
        "pattern-unmatched",
        lambda p: setattr(p, "topic_matches", Matches("", (UnmatchedPattern("topics", "ordrs", "", ("orders",)),))),
        "ordrs (did you mean orders?)",
    ),
    (
        "pattern-unmatched",
        lambda p: setattr(p, "group_matches", Matches("", (UnmatchedPattern("groups", "billng"),))),
        "billng",
    ),
    (
        "more-partitions",
        lambda p: p.target.topics.update({"us.t": topic("us.t", 4)}),
        "4 at the target, 1 at",
    ),
    ("append-check", appends(Trial("gap", AppendVerdict.FAILS, "a gap is taken")), "a gap is taken"),
    ("append-check", appends(Trial("wrap", AppendVerdict.UNTRIED, "not tried")), "not tried"),
    ("append-check-unproven", lambda p: setattr(p.target, "appends", AppendCheck(untold="why not")), "why not"),
    ("append-check-proven", appends(Trial("gap", AppendVerdict.HOLDS, "a gap is refused")), "a gap is refused"),
    ("append-check-proven", appends(Trial("state", AppendVerdict.NOTED, "is not told")), "is not told"),
    ("registry-renamed", registry("us._schemas"), "_schemas becomes us._schemas"),
    ("registry-copied", registry("_schemas"), "_schemas"),
    ("registry-left-out", registry(""), "_schemas"),
]


def found(probe: FlowProbe) -> dict[str, str]:
    compare([probe])
    return {one.rule: one.what for rule in CONNECTED_RULES for one in rule.findings(probe)}


def test_patterns_of_unseen_groups_show_their_references() -> None:
    NAMES_VEIL.put("${env:SHIP}", "ship.*")
    probe = healthy()
    probe.source.pattern_operations["ship.*"] = frozenset()
    assert found(probe)["groups-unseen"].endswith(": DESCRIBE on groups like ${env:SHIP}")


def test_nothing_is_found_where_nothing_is() -> None:
    assert found(healthy()) == {}


@pytest.mark.parametrize(("rule", "change", "says"), BAD, ids=[f"{one[0]}-{n}" for n, one in enumerate(BAD)])
def test_trouble_is_found(rule: str, change: Change, says: str) -> None:
    probe = healthy()
    change(probe)
    assert says in found(probe)[rule]


def test_a_flow_whose_class_cannot_be_loaded_is_not_asked_about(tmp_path: Path) -> None:
    """`--connect` reports it as `lint` alone does; nobody is there to be asked."""
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = us, eu\nus.bootstrap.servers = 127.0.0.1:1\neu.bootstrap.servers = 127.0.0.1:1\n"
        "us->eu.enabled = true\nus->eu.topic.filter.class = nowhere:Filter\n"
    )
    alone, connected = (
        CliRunner().invoke(app, ["lint", str(path), *words]) for words in ((), ("--connect", "--timeout", "1"))
    )
    assert "[wrong-pattern]" in alone.stdout
    assert (connected.exit_code, connected.stdout) == (1, alone.stdout)


@pytest.mark.parametrize(("source", "helps"), [("DEFAULT_CONFIG", True), ("STATIC_BROKER_CONFIG", False)])
def test_the_brokers_files_are_no_defaults_that_a_copy_can_have(source: str, helps: bool) -> None:
    probe = healthy()
    keeps({"retention.ms": "604800000"}, {"retention.ms": "28800000"})(probe)
    probe.source.configs["t"]["retention.ms"] = entry("retention.ms", "604800000", source)
    probe.source.configs["t"]["cleanup.policy"] = entry("cleanup.policy", "delete", "STATIC_BROKER_CONFIG")
    (finding,) = (one for rule in CONNECTED_RULES for one in rule.findings(probe))
    assert "set the property at the source's topic t" in finding.fix
    assert ("use.defaults.from = source" in finding.fix) is helps


def test_every_rule_has_a_trouble() -> None:
    assert {rule.name for rule in CONNECTED_RULES} == {one[0] for one in BAD}


def test_what_is_not_asked_for_needs_no_permission() -> None:
    probe = healthy()
    quiet = TopicSyncConfig(sync_topic_configs_enabled=False, sync_topic_acls_enabled=False)
    probe.flow = probe.flow.model_copy(update={"topic_sync": quiet})
    lose("target", "ALTER_CONFIGS")(probe)
    probe.source.operations = probe.target.operations = frozenset()
    assert found(probe) == {}
    lose("source", "DESCRIBE_CONFIGS")(probe)
    assert "DESCRIBE_CONFIGS on topic t" in found(probe)["forbidden-at-source"], "no copy is created without it"


def test_a_spark_query_needs_to_know_how_long_brokers_remember() -> None:
    probe = healthy()
    assert probe.target.operations is not None
    probe.target.operations -= {"DESCRIBE_CONFIGS"}
    assert found(probe) == {}
    query = TransformQuery(name="cards", topics=("t",))
    probe.flow = probe.flow.model_copy(update={"transform_queries": (query,)})
    assert found(probe)["forbidden-at-target"].endswith(": DESCRIBE_CONFIGS on the cluster, to run Spark queries")


RIGHTS = frozenset({"READ", "WRITE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"})


def acl(operation: int, topic: str = "us.", who: str = "User:ANONYMOUS", pattern: int = PREFIXED) -> Acl:
    return Acl(name=topic, principal=who, host="*", operation=operation, permission=ALLOW, pattern=pattern)


def test_who_may_create_and_not_write() -> None:
    """On a fresh target nothing else would say so."""
    probe = healthy()
    miss("us.new")(probe)
    probe.target.acls = frozenset(acl(code) for code in (READ, CREATE, ALTER, ALTER_CONFIGS))
    told = found(probe)
    assert told.keys() == {"rights-unknown"}
    assert told["rights-unknown"].endswith(": WRITE on topic us.new; no ACL allows it to User:ANONYMOUS")
    probe.target.acls |= {acl(WRITE)}
    assert found(probe) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda side: setattr(side, "everywhere", RIGHTS),
        lambda side: setattr(side, "acls", frozenset({acl(ALL, "*", pattern=LITERAL)})),
        lambda side: setattr(side, "acls", frozenset({acl(ALL, "us.new", "User:*", pattern=LITERAL)})),
        lambda side: setattr(side, "error", "no broker answers"),
        lambda side: side.refusals.update({"us.new": (29, "")}),
    ],
    ids=["all topics", "an ACL for all topics", "an ACL for everybody", "not asked", "not created"],
)
def test_rights_that_are_known(change: Callable[[ProbedCluster], object]) -> None:
    probe = healthy()
    miss("us.new")(probe)
    change(probe.target)
    assert "rights-unknown" not in found(probe)


def fixes(probe: FlowProbe, name: str) -> list[str]:
    return [one.fix for rule in CONNECTED_RULES if rule.name == name for one in rule.findings(probe)]


ADD = "kafka-acls.sh --bootstrap-server eu:1 --add --allow-principal User:ANONYMOUS"
OTHERWISE = ", or grant it by the provider's own policies"


def test_the_commands_for_missing_rights() -> None:
    """Complete for this file: copies and sparkmirror's own topics by their prefix."""
    probe = healthy()
    lose("target", "WRITE")(probe)
    lose("target", "ALTER_CONFIGS")(probe)
    lose_group("target", "us-mm2")(probe)
    refuse("mm2-sparkmirror-segments.us.internal", 29)(probe)
    refuse("heartbeats", 29)(probe)
    assert fixes(probe, "forbidden-at-target") == [
        f"run `{ADD} --operation AlterConfigs --operation Write --topic us. --resource-pattern-type prefixed`"
        f"{OTHERWISE}",
        f"run `{ADD} --operation Read --group us-mm2`{OTHERWISE}",
        f"run `{ADD} --operation Create --topic mm2-sparkmirror- --resource-pattern-type prefixed` and"
        f" `{ADD} --operation Create --topic heartbeats`{OTHERWISE}",
    ]


def test_the_commands_where_names_are_kept() -> None:
    probe = healthy()
    probe.names = {"t": "t"}
    probe.target.topics = {"t": topic("t")}
    probe.target.topic_operations = {"t": frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "ALTER_CONFIGS"})}
    assert fixes(probe, "forbidden-at-target") == [f"run `{ADD} --operation Write --topic t`{OTHERWISE}"]


def test_an_acl_that_denies_the_right_is_to_be_removed() -> None:
    probe = healthy()
    lose("target", "WRITE")(probe)
    denied = Acl(name="us.t", principal="User:ANONYMOUS", host="*", operation=WRITE, permission=DENY)
    probe.target.acls = frozenset({denied, acl(READ)})
    (fix,) = fixes(probe, "forbidden-at-target")
    assert fix.startswith(
        "run `kafka-acls.sh --bootstrap-server eu:1 --remove --deny-principal User:ANONYMOUS --operation Write --topic"
        " us.t --resource-pattern-type literal` and `"
    )


def test_many_topics_are_a_few_and_a_number() -> None:
    probe = healthy()
    for number in range(30):
        probe.names[f"t{number}"] = f"us.t{number}"
        probe.source.topics[f"t{number}"] = topic(f"t{number}")
        probe.source.topic_operations[f"t{number}"] = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})
    (fix,) = fixes(probe, "forbidden-at-source")
    assert fix.count("--topic ") == 20
    assert fix.endswith("policies, and the same for 10 topics more")


def test_configs_that_are_not_copied_need_no_right() -> None:
    probe = healthy()
    miss("us.new")(probe)
    quiet = TopicSyncConfig(sync_topic_configs_enabled=False, sync_topic_acls_enabled=False)
    probe.flow = probe.flow.model_copy(update={"topic_sync": quiet})
    assert "ALTER_CONFIGS" not in found(probe)["rights-unknown"]


def test_topics_that_lack_the_same_are_one_finding() -> None:
    probe = healthy()
    for number in range(5):
        miss(f"us.new{number}")(probe)
    probe.target.acls = frozenset({acl(ALL, "us.new0", pattern=LITERAL)})
    (told,) = [one.what for rule in CONNECTED_RULES for one in rule.findings(probe)]
    assert "on topic us.new1, us.new2, us.new3 and 1 more; no ACL" in told


def test_a_copy_belongs_to_the_first_flow() -> None:
    """Of the file, or the one that another process has run before."""
    probes = [healthy(), healthy(), healthy()]
    for probe, alias in zip(probes, ("us", "asia", "africa"), strict=True):
        source = probe.flow.source.model_copy(update={"alias": alias})
        probe.flow = probe.flow.model_copy(update={"source": source})
        probe.names = {"t": "t", alias: alias}
    compare(probes)
    assert [probe.copiers for probe in probes] == [{}, {"t": "us->eu"}, {"t": "us->eu"}]
    for probe in probes:
        probe.copiers.clear()
    probes[0].copiers["t"] = "asia->eu"
    compare(probes)
    assert [probe.copiers for probe in probes] == [{"t": "asia->eu"}, {}, {"t": "asia->eu"}]


def flows(*pairs: str, **ids: str) -> list[FlowProbe]:
    """Flows such as `ab`, from cluster `a` to `b`; `ids` has the clusters that can be asked."""
    probes = []
    for pair in pairs:
        clusters = [ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in pair]
        source, target = (ProbedCluster(cluster=one, cluster_id=ids.get(one.alias, "")) for one in clusters)
        flow = FlowConfig(source=clusters[0], target=clusters[1])
        probes.append(FlowProbe(flow=flow, source=source, target=target))
    compare(probes)
    return probes


@pytest.mark.parametrize(
    ("probes", "told"),
    [
        (flows("ac", "bc", a="1", b="1", c="2"), [{}, {"b": "a and b"}]),
        (flows("ab", "ba", a="1", b="1"), [{"b": "a and b"}, {}]),
        (flows("ab", "ac", "bd", a="1", b="1", c="2", d="2"), [{"b": "a and b"}, {}, {"d": "c and d"}]),
        (flows("ac", "ca", "bc", a="1", b="2", c="3"), [{}, {}, {}]),
        (flows("ac", "bc", c="3"), [{}, {}]),
    ],
    ids=["two sources", "both directions", "two pairs", "none", "not asked"],
)
def test_a_cluster_with_two_aliases_is_told_once(probes: list[FlowProbe], told: list[dict[str, str]]) -> None:
    """A run compares the clusters of all flows, not only the two of each."""
    (rule,) = [rule for rule in CONNECTED_RULES if rule.name == "one-cluster"]
    for probe, expected in zip(probes, told, strict=True):
        said = {one.key: one.what.partition(": ")[2].partition(" are the same")[0] for one in rule.findings(probe)}
        assert said == {f"{alias}.bootstrap.servers": aliases for alias, aliases in expected.items()}


def test_a_limit_that_is_copied_is_none() -> None:
    """A topic's own max.message.bytes goes along when its copy is made."""
    probe = healthy()
    del probe.target.topics["us.t"]
    large = entry("max.message.bytes", "9999999")
    probe.source.configs["t"] = {"max.message.bytes": large}
    assert "message-too-large" in found(probe)
    own = entry("max.message.bytes", "9999999", "DYNAMIC_TOPIC_CONFIG")
    probe.source.configs["t"] = {"max.message.bytes": own}
    assert "message-too-large" not in found(probe)


def test_whose_limit_of_age_counts() -> None:
    probe = healthy()
    assert timestamp_limit(probe, "us.t") is None
    probe.target.limits["log.message.timestamp.before.max.ms"] = 5
    assert timestamp_limit(probe, "us.t") == 5
    own = entry("message.timestamp.before.max.ms", "7")
    probe.target.configs["us.t"]["message.timestamp.before.max.ms"] = own
    assert timestamp_limit(probe, "us.t") == 7


def test_the_limit_of_age_before_kafka_3_6() -> None:
    """It was one for both directions; later brokers take it where the new one is not set."""
    probe, unlimited = healthy(), 2**63 - 1
    assert "log.message.timestamp.difference.max.ms" in probing.LIMITS  # is asked for
    probe.target.limits["log.message.timestamp.difference.max.ms"] = 5
    assert timestamp_limit(probe, "us.t") == 5
    probe.target.limits["log.message.timestamp.before.max.ms"] = unlimited
    assert timestamp_limit(probe, "us.t") == 5
    own = probe.target.configs["us.t"]
    own["message.timestamp.difference.max.ms"] = entry("message.timestamp.difference.max.ms", "7")
    assert timestamp_limit(probe, "us.t") == 7
    own["message.timestamp.before.max.ms"] = entry("message.timestamp.before.max.ms", str(unlimited))
    assert timestamp_limit(probe, "us.t") == 7
    own["message.timestamp.before.max.ms"] = entry("message.timestamp.before.max.ms", "9")
    assert timestamp_limit(probe, "us.t") == 9
    own["message.timestamp.before.max.ms"] = entry("message.timestamp.before.max.ms", str(unlimited))
    own["message.timestamp.difference.max.ms"] = entry("message.timestamp.difference.max.ms", str(unlimited))
    assert timestamp_limit(probe, "us.t") is None


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"replication_factor": 7}, "mm2-offsets.us.internal"),
        ({"connect": ConnectStorage(offset_storage_topic="kept")}, "kept"),
        ({"copies": False}, None),
        ({"legacy": LegacyConfig(group_id="old")}, None),
    ],
)
def test_internal_topics_are_tried_as_the_mirror_makes_them(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, object], name: str | None
) -> None:
    def refuse_to_open(*_: object) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(probing, "_open", refuse_to_open)
    asked = probing.probe(healthy().flow.model_copy(update=change), 1)
    topics = {one for one, key in asked.factor_keys.items() if key == "offset.storage.replication.factor"}
    assert topics == ({name} if name else set())
    for one in topics:
        assert asked.internal[one] is asked.target
        assert asked.specs[one] == NewTopicSpec(one, 25, 3, {"cleanup.policy": "compact"})
    own = asked.specs["mm2-sparkmirror-segments.us.internal"]
    assert own.replication_factor == (change.get("replication_factor", 2) if asked.flow.copies else -1)


def test_the_topics_of_queries_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_to_open(*_: object) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(probing, "_open", refuse_to_open)
    query = TransformQuery(name="q", topics=("t",), sql="SELECT * FROM records")
    for queries in ((), (query,)):
        asked = probing.probe(healthy().flow.model_copy(update={"transform_queries": queries}), 1)
        assert (plans_topic("us") in asked.internal, SINK_TOPIC in asked.internal) == (bool(queries),) * 2
