"""Files as people have them: connectors in every shape, kubectl's lists, folders with a wrong file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from resources import RESOURCE, values

from sparkmirror.config.formats import files, model_of, read
from sparkmirror.config.formats.convert import convert
from sparkmirror.errors import ConfigError
from sparkmirror.lint import check

INT = " a whole number from 1 to 2147483647"
PACKAGE = "org.apache.kafka.connect.mirror."
STANDALONE = """\
bootstrap.servers=t:9092
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.file.filename=/tmp/connect.offsets
offset.flush.interval.ms=10000
plugin.path=/opt/plugins
"""
DISTRIBUTED = "bootstrap.servers=t:9092\ngroup.id=connect-cluster\noffset.storage.topic=connect-offsets\n"


def connector(role: str = "Source", **more: Any) -> dict[str, Any]:
    return {
        "name": f"mm2-{role.lower()}",
        "connector.class": f"{PACKAGE}Mirror{role}Connector",
        "source.cluster.alias": "us",
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": "s:9092",
        "target.cluster.bootstrap.servers": "t:9092",
        **more,
    }


def properties(directory: Path, name: str, settings: dict[str, Any] | str) -> str:
    lines = settings if isinstance(settings, str) else "".join(f"{key}={value}\n" for key, value in settings.items())
    path = directory / f"{name}.properties"
    path.write_text(lines)
    return str(path)


def written(directory: Path, name: str, tree: Any) -> str:
    path = directory / name
    path.write_text(json.dumps(tree, indent=2) if name.endswith("json") else yaml.safe_dump(tree))
    return str(path)


def mistakes(*paths: str, **how: Any) -> list[str]:
    """All lines of what is raised."""
    with pytest.raises(ConfigError) as caught:
        model_of(read(paths, **how))
    return str(caught.value).splitlines()


# --- connectors as properties ---------------------------------------------------------------------------


def test_a_connector_as_properties_is_read_as_its_json_is(tmp_path: Path) -> None:
    settings = connector(topics="orders") | {"tasks.max": 4}
    plain = values(read([properties(tmp_path, "source", settings)]))
    assert plain == values(read([written(tmp_path, "source.json", settings)]))
    assert plain["us->eu.topics"] == "orders"


@pytest.mark.parametrize("role", ["Source", "Checkpoint", "Heartbeat"])
@pytest.mark.parametrize("short", [True, False])
def test_a_connector_of_a_standalone_worker(tmp_path: Path, role: str, short: bool) -> None:
    """Alone, as `connect-standalone.sh` takes it; its aliases are those of Kafka's own example."""
    settings = connector(role, **{"tasks.max": "1"}) | {"source.cluster.alias": "source", "topics": "orders"}
    del settings["target.cluster.alias"]
    settings["connector.class"] = f"Mirror{role}" if short else settings["connector.class"]
    path = properties(tmp_path, "mirror", settings)
    if role == "Checkpoint":
        assert "these files have no MirrorSourceConnector for source->target" in mistakes(path)[0]
        return
    config, _ = model_of(read([path]))
    (flow,) = config.flows or config.beats
    assert (flow.name, bool(config.flows)) == ("source->target", role == "Source")
    if role == "Source":
        assert (flow.connect.connector, flow.topics, flow.tasks_max) == ("mm2-source", ("orders",), 1)


@pytest.mark.parametrize("worker", [STANDALONE, DISTRIBUTED, None])
@pytest.mark.parametrize("folder", [True, False])
def test_several_with_a_workers_file(tmp_path: Path, worker: str | None, folder: bool) -> None:
    paths = [properties(tmp_path, f"mm2-{role}", connector(role)) for role in ("Source", "Checkpoint", "Heartbeat")]
    paths += [properties(tmp_path, "connect", worker)] if worker else []
    config, _ = model_of(read([str(tmp_path)] if folder else paths))
    (flow,) = config.flows
    assert (flow.name, flow.connect.connector) == ("us->eu", "mm2-source")
    assert flow.group.emit_checkpoints_enabled
    assert flow.heartbeat.emit_heartbeats_enabled
    said = "\n".join(config.warnings)
    assert ("offset.storage.file.filename: is not read: where a standalone worker was" in said) is (
        worker == STANDALONE
    )


def test_without_a_name_it_is_called_as_its_file(tmp_path: Path) -> None:
    settings = {key: value for key, value in connector().items() if key != "name"}
    assert model_of(read([properties(tmp_path, "mirror", settings)]))[0].flows[0].connect.connector == "mirror"


def test_a_workers_file_alone_names_what_is_missing(tmp_path: Path) -> None:
    for text in (STANDALONE, DISTRIBUTED):
        (line,) = mistakes(properties(tmp_path, "worker", text))
        assert "says how Connect's workers run, but not what: give the connectors' files, too" in line


def test_without_brokers_of_its_own_it_writes_to_its_workers_cluster(tmp_path: Path) -> None:
    settings = {key: value for key, value in connector().items() if key != "target.cluster.bootstrap.servers"}
    paths = [properties(tmp_path, "source", settings), properties(tmp_path, "worker", DISTRIBUTED)]
    assert model_of(read(paths))[0].flows[0].target.bootstrap_servers == ("t:9092",)


@pytest.mark.parametrize("more", ["", "offset.storage.replication.factor=1\nconfig.storage.replication.factor=1\n"])
def test_an_mm2_file_is_no_workers(tmp_path: Path, more: str) -> None:
    text = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\ngroup.id=x\n" + more
    assert read([properties(tmp_path, "mm2", text)]).format == "properties"
    assert "clusters: names no clusters" in mistakes(properties(tmp_path, "mm3", text.partition("\n")[2]))[0]


# --- shapes of JSON -------------------------------------------------------------------------------------


def info(role: str = "Source", **more: Any) -> dict[str, Any]:
    settings = connector(role, **more)
    tasks = [{"connector": settings["name"], "task": 0}]
    return {"name": settings["name"], "config": settings, "tasks": tasks, "type": "source"}


def status(state: str) -> dict[str, Any]:
    return {"name": "x", "connector": {"state": state, "worker_id": "w:1"}, "tasks": [], "type": "source"}


SHAPES = {
    "a bare map": connector(topics="orders"),
    "as it is posted": {"name": "mm2-source", "config": connector(topics="orders")},
    "GET /connectors/x": info(topics="orders"),
    "a list": [connector(topics="orders"), connector("Heartbeat")],
    "a list of what is posted": [info(topics="orders"), info("Checkpoint")],
    "expand=info": {"mm2-source": {"info": info(topics="orders")}, "mm2-hb": {"info": info("Heartbeat")}},
    "expand=info&expand=status": {"mm2-source": {"info": info(topics="orders"), "status": status("FAILED")}},
    "one that is none of ours": {
        "mm2-source": {"info": info(topics="orders")},
        "s3": {"info": {"name": "s3", "config": {"connector.class": "io.confluent.connect.s3.S3SinkConnector"}}},
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape(tmp_path: Path, shape: str) -> None:
    config, _ = model_of(read([written(tmp_path, "connectors.json", SHAPES[shape])]))
    (flow,) = config.flows
    assert flow.topics == ("orders",)
    assert flow.connect.connector == "mm2-source"
    assert any("s3 is none of MirrorMaker 2's connectors" in line for line in config.warnings) is ("ours" in shape)


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_state_that_connect_tells_is_kept(tmp_path: Path, state: str) -> None:
    tree = {"mm2-source": {"info": info(), "status": status(state)}}
    assert read([written(tmp_path, "connectors.json", tree)]).idle == "every connector is paused or stopped"


def test_values_of_every_type(tmp_path: Path) -> None:
    more = {"tasks.max": 3, "sync.topic.acls.enabled": False, "topics": ["a", "b"], "header.converter": None}
    typed = connector() | more
    (flow,) = model_of(read([written(tmp_path, "s.json", typed)]))[0].flows
    assert (flow.tasks_max, flow.topic_sync.sync_topic_acls_enabled, flow.topics) == (3, False, ("a", "b"))


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (["mm2-msc", "mm2-cpc"], "holds connectors' names only: ask Connect with GET /connectors?expand=info"),
        ({"mm2-msc": {"status": status("RUNNING")}}, "has no configurations: ask Connect with"),
        ({"error_code": 404, "message": "Connector x not found"}, "connector.class: names no connector"),
        ([], "give the connectors' files, too"),
    ],
)
def test_what_holds_no_connector(tmp_path: Path, tree: Any, says: str) -> None:
    assert says in "\n".join(mistakes(written(tmp_path, "connectors.json", tree)))


def test_each_value_has_its_line_in_an_expanded_answer(tmp_path: Path) -> None:
    tree = {"a": {"info": info(**{"tasks.max": "many"})}, "b": {"info": info("Checkpoint")}}
    path = written(tmp_path, "connectors.json", tree)
    number = 1 + next(n for n, line in enumerate(Path(path).read_text().splitlines()) if '"tasks.max"' in line)
    assert mistakes(path) == [
        f"{path}, line {number}: tasks.max: 'many' is not allowed, it must be a whole number from 1 to 2147483647"
    ]


# --- what kubectl prints --------------------------------------------------------------------------------


def as_kubectl_prints_it(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "me"}, "data": {"word": "aHVzaA==", "p12": "/w=="}}
USER = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser", "metadata": {"name": "me"}, "spec": {}}
SIGN_IN = {"type": "plain", "username": "u", "passwordSecret": {"secretName": "me", "password": "word"}}


def resource(alias: str = "us", **target: Any) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(json.dumps(RESOURCE))
    tree["metadata"] |= {"managedFields": [{"manager": "kubectl"}], "name": alias}
    tree["spec"]["mirrors"][0]["source"] |= {"alias": alias, "bootstrapServers": f"{alias}:9092"}
    tree["spec"]["target"] |= target
    return {**tree, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize("name", ["list.yaml", "list.json", "list"])
@pytest.mark.parametrize("kind", ["List", "KafkaMirrorMaker2List"])
def test_a_list(tmp_path: Path, name: str, kind: str) -> None:
    tree = as_kubectl_prints_it(resource("us"), USER, resource("asia")) | {"kind": kind}
    path = tmp_path / name
    path.write_text(yaml.safe_dump(tree) if name.endswith("yaml") else json.dumps(tree, indent="\t"))
    config, _ = model_of(read([str(path)]))
    assert [flow.name for flow in config.flows] == ["us->eu", "asia->eu"]


OLD_SPEC = """\
clusters:
- {alias: source, bootstrapServers: "s:9092"}
- alias: target
  bootstrapServers: t:9092
  config: {offset.storage.replication.factor: -1, status.storage.replication.factor: -1}
connectCluster: target
mirrors:
- checkpointConnector:
    config: {replication.policy.class: POLICY, sync.group.offsets.enabled: 'true'}
    tasksMax: 1
  groupsPattern: .*
  sourceCluster: source
  sourceConnector:
    config: {offset-syncs.topic.replication.factor: -1, replication.policy.class: POLICY}
    tasksMax: 1
  targetCluster: target
  topicsPattern: topic-.*
replicas: 1
version: 3.9.0
"""


def old(name: str = "mm2-lab") -> dict[str, Any]:
    """A resource of v1beta2, with its status, as a cluster has it."""
    spec = yaml.safe_load(OLD_SPEC.replace("POLICY", f"{PACKAGE}IdentityReplicationPolicy"))
    spec["clusters"][0]["alias"] = spec["mirrors"][0]["sourceCluster"] = name
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"generation": 2, "managedFields": [{"manager": "kubectl"}], "name": name, "namespace": "kafka"},
        "spec": spec,
        "status": {"conditions": [{"status": "True", "type": "Ready"}], "url": "http://x:8083"},
    }


@pytest.mark.parametrize(
    ("items", "flows"),
    [
        ([old("source")], ["source->target"]),
        ([old("source"), old("asia")], ["source->target", "asia->target"]),
        ([USER, old("source"), SECRET], ["source->target"]),
        ([old("source"), resource("us")], ["source->target", "us->eu"]),
        ([as_kubectl_prints_it(old("source"))], ["source->target"]),
    ],
    ids=["one", "two", "with strangers", "of both versions", "a list in a list"],
)
@pytest.mark.parametrize("name", ["list.yaml", "list.json"])
def test_a_list_of_the_older_version(tmp_path: Path, name: str, items: list[Any], flows: list[str]) -> None:
    config, _ = model_of(read([written(tmp_path, name, as_kubectl_prints_it(*items))]))
    assert [flow.name for flow in config.flows] == flows
    flow = config.flows[0]
    assert (flow.topics, flow.replication_policy_class) == (("topic-.*",), f"{PACKAGE}IdentityReplicationPolicy")
    assert flow.group.sync_group_offsets_enabled


def test_a_secret_beside_it_is_that_secret(tmp_path: Path) -> None:
    """Also one with values that are no text, which nobody asks for."""
    both = resource(authentication=SIGN_IN)
    for path in (
        written(tmp_path, "list.yaml", as_kubectl_prints_it(SECRET, both, USER)),
        written(tmp_path, "one.json", as_kubectl_prints_it(SECRET, both)),
    ):
        (flow,) = model_of(read([path]))[0].flows
        assert 'password="hush"' in flow.target.sasl.jaas_config.get_secret_value()


def test_a_directory_and_several_files_of_yaml(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    (folder / "below").mkdir(parents=True)
    paths = [
        written(folder, "a.yaml", resource("us", authentication=SIGN_IN)),
        written(folder, "below/b.yml", resource("asia", authentication=SIGN_IN)),
        written(folder, "secret.yaml", SECRET),
        written(folder, "kustomization.yaml", {"resources": ["a.yaml"]}),
        written(folder, "dashboard.json", {"panels": []}),
    ]
    for given in ([str(folder)], paths[:3]):
        config, _ = model_of(read(given))
        assert [flow.name for flow in config.flows] == ["us->eu", "asia->eu"]


def test_lines_in_a_list_are_the_files_own(tmp_path: Path) -> None:
    wrong = resource()
    wrong["spec"]["mirrors"][0]["sourceConnector"]["tasksMax"] = 0
    path = written(tmp_path, "list.yaml", as_kubectl_prints_it(resource("asia"), wrong))
    number = 1 + next(n for n, line in enumerate(Path(path).read_text().splitlines()) if "tasksMax: 0" in line)
    assert mistakes(path)[0].startswith(f"{path}, line {number}: spec.mirrors[0].sourceConnector.tasksMax: '0' is")


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (as_kubectl_prints_it(), "holds no resource of kind KafkaMirrorMaker2"),
        (as_kubectl_prints_it(USER, SECRET), "holds no resource of kind KafkaMirrorMaker2; there is KafkaUser, Secret"),
        (as_kubectl_prints_it("x"), "items[0]: is not a mapping"),
    ],
)
def test_lists_without_a_resource(tmp_path: Path, tree: Any, says: str) -> None:
    assert says in mistakes(written(tmp_path, "list.yaml", tree))[0]


# --- a folder with a wrong file -------------------------------------------------------------------------


WRONG = {
    "a second one": ("mm2-hbt.json", connector("Checkpoint", name="mm2-hbt"), "is a second MirrorCheckpointConnector"),
    "no connector of ours": (
        "sink.json",
        {"connector.class": "x.FileSink"},
        "connector.class: is none of MirrorMaker 2's",
    ),
    "no connector": ("package.json", {"version": 1}, "connector.class: names no connector"),
    "no JSON": ("notes.json", "{not json", "is no JSON"),
    "no worker's": ("log4j.properties", "log4j.rootLogger=INFO\n", "is neither a connector's file nor a worker's"),
    "another format": ("mm2.properties", "clusters=a,b\n", "is MirrorMaker 2's own file, and "),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_folder_with_a_wrong_file(tmp_path: Path, kind: str) -> None:
    """It is a finding, and the others are looked at; what would run them stops."""
    for role in ("Checkpoint", "Source"):
        written(tmp_path, f"mm2-{role[0]}.json", connector(role, **{"tasks.max": 1}))
    name, content, says = WRONG[kind]
    (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    (line,) = [line for line in mistakes(str(tmp_path)) if line]
    assert name in line
    assert says in line
    reading = read([str(tmp_path)], partly=True)
    rules = {finding.rule: finding for finding in check(reading)}
    assert rules["wrong-file"].file == str(tmp_path / name)
    assert says.partition(": ")[2] in rules["wrong-file"].what
    assert "one-task" in rules
    assert "unusable" not in rules
    assert [flow.name for flow in model_of(reading)[0].flows] == ["us->eu"]


def test_only_wrong_files_are_an_error_for_lint_too(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{name}.json", {"version": 1}) for name in "ab"]
    assert len(mistakes(*paths, partly=True)) == 2


def test_strangers_in_a_folder_are_passed_over_but_not_if_named(tmp_path: Path) -> None:
    mirror = written(tmp_path, "mirror.yaml", resource())
    log4j = properties(tmp_path, "log4j", "log4j.rootLogger=INFO\n")
    assert read([str(tmp_path)]).format == "strimzi"
    assert "is no file of any format that is read" in mistakes(mirror, log4j)[0]


# --- Secrets that aren't there --------------------------------------------------------------------------


def secured() -> dict[str, Any]:
    tls = {"trustedCertificates": [{"secretName": "ca", "pattern": "*.crt"}]}
    tree = resource(tls=tls, authentication=SIGN_IN)
    pair = {"secretName": "own", "certificate": "user.crt", "key": "user.key"}
    tree["spec"]["mirrors"][0]["source"] |= {
        "tls": {"trustedCertificates": [{"secretName": "ca", "certificate": "ca.crt"}]},
        "authentication": {"type": "tls", "certificateAndKey": pair},
    }
    config = tree["spec"]["mirrors"][0]["sourceConnector"]["config"]
    config["replication.factor"] = "${strimzisecrets:kafka/numbers:factor}"
    return tree


def test_without_secrets_a_run_names_all_of_them(tmp_path: Path) -> None:
    lines = mistakes(written(tmp_path, "mirror.yaml", secured()))
    for name in ("ca", "me", "own", "numbers"):
        assert sum(f"Secret {name} is needed: say with --secrets DIR" in line for line in lines) == 1, lines


def test_without_secrets_the_rest_is_looked_at(tmp_path: Path) -> None:
    reading = read([written(tmp_path, "mirror.yaml", secured())], without_secrets=True)
    findings = check(reading)
    assert {one.what.partition("Secret ")[2].split()[0] for one in findings if one.rule == "missing-secret"} == {
        *("ca", "me", "own", "numbers"),
    }
    assert not [one for one in findings if one.rule in ("literal-secret", "placeholder", "unusable")]
    config, shown = model_of(reading)
    told = {one.key: one.value for one in shown}
    assert told["eu.sasl.jaas.config"] == told["us.ssl.keystore.key"] == "not known"
    assert told["eu.ssl.truststore.certificates"] == "not known"
    assert told["replication.factor"] == "not known"
    assert told["topics"] == "orders.*"
    assert len([line for line in config.warnings if "until then its values are not known" in line]) == 4


def old_layout() -> dict[str, Any]:
    """The same in v1beta2, as Strimzi had it."""
    spec = secured()["spec"]
    source = spec["mirrors"][0]["source"]
    target = {key: spec["target"][key] for key in ("alias", "bootstrapServers", "tls", "authentication")}
    mirror = {"sourceCluster": "us", "targetCluster": "eu", "sourceConnector": spec["mirrors"][0]["sourceConnector"]}
    old = {"replicas": 1, "connectCluster": "eu", "clusters": [source, target], "mirrors": [mirror]}
    return {**RESOURCE, "apiVersion": "kafka.strimzi.io/v1beta2", "spec": old}


def test_v1beta2_becomes_v1_without_secrets(tmp_path: Path) -> None:
    """As with Strimzi's own converter: they are named in it, and nothing of them is needed."""
    path = written(tmp_path, "old.yaml", old_layout())
    made = convert(read([path], without_secrets=True), "strimzi")
    (new,) = yaml.safe_load_all(made.files["mirror.yaml"])
    assert new["apiVersion"] == "kafka.strimzi.io/v1"
    old = old_layout()["spec"]
    assert new["spec"]["mirrors"][0]["source"] == old["clusters"][0]
    assert new["spec"]["target"]["authentication"] == SIGN_IN
    assert new["spec"]["mirrors"][0]["sourceConnector"] == old["mirrors"][0]["sourceConnector"]
    assert "not known" not in made.files["mirror.yaml"]
    assert not made.notes


def test_another_format_says_what_is_not_known(tmp_path: Path) -> None:
    path = written(tmp_path, "mirror.yaml", secured())
    made = convert(read([path], without_secrets=True), "properties")
    text = made.files["mm2.properties"]
    assert "<Secret me, key word\\: not known>" in text or "<Secret me, key word: not known>" in text
    assert sum("until then its values are not known" in line for line in made.warnings) == 4
    (tmp_path / "made.properties").write_text(text)
    rules = {one.rule for one in check(read([str(tmp_path / "made.properties")]))}
    assert "placeholder" in rules
    assert "literal-secret" not in rules


def test_a_directory_with_too_many_files_is_a_wrong_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 2)
    properties(tmp_path, "source", connector())
    properties(tmp_path, "worker", DISTRIBUTED)
    (tmp_path / ".hidden").mkdir()
    properties(tmp_path / ".hidden", "more", DISTRIBUTED)
    assert read([str(tmp_path)])
    (tmp_path / "deeper").mkdir()
    properties(tmp_path / "deeper", "more", DISTRIBUTED)
    (line,) = mistakes(str(tmp_path))
    assert line.startswith(f"{tmp_path}: is a directory with more than 2 files of .json, .properties")
