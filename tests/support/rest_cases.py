"""The requests that are sent to a real Connect worker and to ours, in this order: success and error cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

JSON = {"Content-Type": "application/json"}
FOREIGN = {"Origin": "http://evil.example"}
VERSION = "connector.plugin.version"
CLASS = "org.apache.kafka.connect.mirror.Mirror{}Connector"


@dataclass(frozen=True)
class Case:
    """One request. `until`: it is sent again, for a while, until its answer's JSON is so."""

    name: str
    method: str
    path: str
    body: object = None
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))
    until: Callable[[object], bool] | None = None
    only: tuple[str, ...] = ()
    """Fields of the answer that are compared, if not all: what it is about depends on who works."""

    @property
    def content(self) -> bytes | None:
        """The body as it is sent: text as it is, anything else as JSON."""
        if self.body is None:
            return None
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


def connector(kind: str, source: str, target: str, **more: str) -> dict[str, str]:
    """A connector's configuration, of `kind` Source, Checkpoint or Heartbeat."""
    return {
        "connector.class": CLASS.format(kind),
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "topics": "compared",
        "tasks.max": "2",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def running(tasks: int) -> Callable[[object], bool]:
    """Whether a status has that many tasks, and all run."""

    def fits(status: object) -> bool:
        if not isinstance(status, dict) or "connector" not in status:
            return False
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        return states == ["RUNNING"] * (tasks + 1)

    return fits


def in_state(state: str, tasks: int | None = None) -> Callable[[object], bool]:
    """Whether a status is so, and has that many tasks."""

    def fits(status: object) -> bool:
        if not isinstance(status, dict) or "connector" not in status:
            return False
        right = status["connector"]["state"] == state and all(task["state"] == state for task in status["tasks"])
        return right and (tasks is None or len(status["tasks"]) == tasks)

    return fits


def is_gone(answer: object) -> bool:
    """Whether it is a 404's body."""
    return isinstance(answer, dict) and answer.get("error_code") == 404


def names_no_deleted(answer: object) -> bool:
    """A real worker names a partition without its offset until it has read its own deletion back."""
    assert isinstance(answer, dict)
    return all(one["offset"] is not None for one in answer["offsets"])


def offsets_of(*parts: tuple[object, object]) -> dict[str, object]:
    """The body of an offsets request."""
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in parts]}


def rest_cases(source: str, target: str) -> list[Case]:
    """All of them; `source` and `target` are bootstrap servers; `source` has a topic `compared` with 2 partitions."""
    msc, cpc, hbc = (connector(kind, source, target) for kind in ("Source", "Checkpoint", "Heartbeat"))
    at = {"cluster": "a", "topic": "compared", "partition": 0}
    put_msc = {**msc, "name": "msc"}
    plugin = "/connector-plugins/" + CLASS.format("Source")
    return [
        # The worker
        Case("who it is", "GET", "/"),
        Case("health", "GET", "/health"),
        Case("no connectors", "GET", "/connectors"),
        Case("no connectors, with their status", "GET", "/connectors?expand=status"),
        Case("an unknown path", "GET", "/nothing"),
        Case("an unknown path below connectors", "GET", "/connectors/msc/nothing"),
        Case("a method that isn't there", "DELETE", "/connectors"),
        Case("a method that isn't there, of a connector", "PUT", "/connectors/msc"),
        Case("a slash at the end", "GET", "/connectors/"),
        Case("HEAD", "HEAD", "/connectors"),
        Case("OPTIONS", "OPTIONS", "/connectors"),
        # Plug-ins
        Case("connector plug-ins", "GET", "/connector-plugins"),
        Case("all plug-ins", "GET", "/connector-plugins?connectorsOnly=false"),
        Case("what the source connector takes", "GET", plugin + "/config"),
        Case(
            "what the checkpoint connector takes, by its short name",
            "GET",
            "/connector-plugins/MirrorCheckpointConnector/config",
        ),
        Case("what the heartbeat connector takes, by its alias", "GET", "/connector-plugins/MirrorHeartbeat/config"),
        Case("what an unknown plug-in takes", "GET", "/connector-plugins/NoSuchConnector/config"),
        *[
            Case(
                f"what it takes, in version {version or 'nothing'}", "GET", f"{plugin}/config?version={quote(version)}"
            )
            for version in (
                "4.3.1",
                "latest",
                "1.0.0",
                "[4.0,5.0)",
                "[1.0,2.0)",
                "[1.0",
                "(4.3.1)",
                "(4,4)",
                "4.3.1-rc1",
                "",
            )
        ],
        Case("what an unknown plug-in takes, in a version", "GET", "/connector-plugins/NoSuch/config?version=1"),
        *[
            Case(
                f"validate with the connector's version {version or 'nothing'}",
                "PUT",
                plugin + "/config/validate",
                {**put_msc, "connector.plugin.version": version},
            )
            for version in ("4.3.1", "[4.0,5.0)", "1.0", "[1.0", "")
        ],
        *[
            Case(
                f"validate with a converter's version {version}",
                "PUT",
                plugin + "/config/validate",
                {
                    **put_msc,
                    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
                    "key.converter.plugin.version": version,
                },
            )
            for version in ("4.3.1", "1.0", "[1.0")
        ],
        Case("validate a source connector", "PUT", plugin + "/config/validate", put_msc),
        Case("validate by the short name", "PUT", "/connector-plugins/MirrorSourceConnector/config/validate", put_msc),
        Case(
            "validate by the alias",
            "PUT",
            "/connector-plugins/MirrorSource/config/validate",
            {**put_msc, "connector.class": "MirrorSource"},
        ),
        Case(
            "validate a checkpoint connector",
            "PUT",
            "/connector-plugins/MirrorCheckpointConnector/config/validate",
            {**cpc, "name": "cpc"},
        ),
        Case(
            "validate a heartbeat connector",
            "PUT",
            "/connector-plugins/MirrorHeartbeatConnector/config/validate",
            {**hbc, "name": "hbc"},
        ),
        Case("validate without a class", "PUT", plugin + "/config/validate", {"name": "msc"}),
        Case("validate another class", "PUT", plugin + "/config/validate", {**cpc, "name": "cpc"}),
        Case(
            "validate an unknown class",
            "PUT",
            "/connector-plugins/NoSuchConnector/config/validate",
            {"connector.class": "NoSuchConnector"},
        ),
        Case("validate without a name", "PUT", plugin + "/config/validate", msc),
        Case(
            "validate without aliases",
            "PUT",
            plugin + "/config/validate",
            {"name": "msc", "connector.class": CLASS.format("Source")},
        ),
        Case(
            "validate wrong values",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "tasks.max": "many", "refresh.topics.enabled": "perhaps", "offset.lag.max": "-1"},
        ),
        Case("validate no tasks", "PUT", plugin + "/config/validate", {**put_msc, "tasks.max": "0"}),
        Case(
            "validate an unknown policy",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "replication.policy.class": "com.example.NoPolicy"},
        ),
        Case("validate with an unknown key", "PUT", plugin + "/config/validate", {**put_msc, "no.such.key": "1"}),
        Case("validate with null", "PUT", plugin + "/config/validate", {**put_msc, "topics": None}),
        Case(
            "validate a wrong location of offset syncs",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "offset-syncs.topic.location": "nowhere"},
        ),
        Case(
            "validate exactly once without read_committed",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "exactly.once.support": "required"},
        ),
        Case(
            "validate syncs that are off and set up",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "emit.offset-syncs.enabled": "false"},
        ),
        Case(
            "validate a password",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "ssl.keystore.password": "never-shown"},
        ),
        Case(
            "validate a reference",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "topics": "${env:HOME}", "tasks.max": "${env:HOME}"},
        ),
        Case(
            "validate a producer's override",
            "PUT",
            plugin + "/config/validate",
            {**put_msc, "producer.override.linger.ms": "1"},
        ),
        Case(
            "validate a transformation",
            "PUT",
            plugin + "/config/validate",
            {
                **put_msc,
                "transforms": "t",
                "transforms.t.type": "org.apache.kafka.connect.transforms.DropHeaders",
                "transforms.t.headers": "h",
            },
        ),
        Case("validate no JSON", "PUT", plugin + "/config/validate", "{"),
        # Creating
        Case("create", "POST", "/connectors", {"name": "msc", "config": msc}),
        Case("create it again", "POST", "/connectors", {"name": "msc", "config": msc}),
        Case("create without a class", "POST", "/connectors", {"name": "x", "config": {"topics": "x"}}),
        Case(
            "create an unknown class",
            "POST",
            "/connectors",
            {"name": "x", "config": {"connector.class": "org.example.NoSuchConnector"}},
        ),
        Case(
            "create a class that doesn't fit",
            "POST",
            "/connectors",
            {"name": "x", "config": {"connector.class": "org.apache.kafka.connect.json.JsonConverter"}},
        ),
        Case("create without a name", "POST", "/connectors", {"config": msc}),
        Case("create with two names", "POST", "/connectors", {"name": "x", "config": {**msc, "name": "y"}}),
        Case("create with a list for a name", "POST", "/connectors", {"name": ["x"], "config": msc}),
        Case("create with wrong values", "POST", "/connectors", {"name": "x", "config": {**msc, "tasks.max": "many"}}),
        Case("create with a control character in the name", "POST", "/connectors", {"name": "x\u0001y", "config": msc}),
        Case(
            "create without aliases",
            "POST",
            "/connectors",
            {"name": "x", "config": {"connector.class": CLASS.format("Source")}},
        ),
        Case("create without a configuration", "POST", "/connectors", {"name": "x"}),
        Case("create with an unknown field", "POST", "/connectors", {"name": "x", "configs": msc}),
        Case(
            "create with an unknown initial state",
            "POST",
            "/connectors",
            {"name": "x", "config": msc, "initial_state": "ASLEEP"},
        ),
        Case(
            "create with numbers for text",
            "POST",
            "/connectors",
            {"name": "x", "config": {**msc, "tasks.max": "0", "replication.factor": 1}},
        ),
        *[
            Case(f"create a name {what}", "PUT", f"/connectors/{quote(name)}/config", {**hbc, "topics": what})
            for what, name in (
                ("with a line's end", "x\r\ny"),
                ("with a line's end at its end", "x\r\n"),
                ("with a NUL", "x\0y"),
                ("with an escape", "x\x1b[2J"),
                ("with a C1 control", "x\x85y"),
                ("of blanks", "   "),
                ("of Greek", "αβγ"),
                ("with a blank", "a b"),
                ("of 300 letters", "n" * 300),
            )
        ],
        *[
            Case(f"delete the name {what}", "DELETE", f"/connectors/{quote(name)}")
            for what, name in (("of Greek", "αβγ"), ("with a blank", "a b"), ("of 300 letters", "n" * 300))
        ],
        *[
            Case(f"create by POST a name {what}", "POST", "/connectors", {"name": name, "config": hbc})
            for what, name in (
                ("with a line's end", "x\r\ny"),
                ("with a C1 control", "x\x85y"),
                ("of blanks", "  "),
                ("of nothing", ""),
            )
        ],
        Case("create from 200,000 brackets", "POST", "/connectors", "[" * 200_000),
        Case("create from a nested configuration", "POST", "/connectors", {"name": "x", "config": {"a": {"b": "c"}}}),
        Case("create from infinity", "POST", "/connectors", '{"name": "x", "config": {"a": Infinity}}'),
        Case("PATCH a connector", "PATCH", "/connectors/x", {}),
        Case("an unknown method", "FROBNICATE", "/connectors"),
        Case("create from what is no JSON", "POST", "/connectors", "{"),
        Case("create from nothing", "POST", "/connectors"),
        Case("create from no content type", "POST", "/connectors", {"name": "msc", "config": msc}, {}),
        Case("PUT without a content type", "PUT", "/connectors/hbc/config", hbc, {}),
        Case("patch without a content type", "PATCH", "/connectors/hbc/config", {"topics": "x"}, {}),
        Case(
            "create from another content type",
            "POST",
            "/connectors",
            "name=x",
            {"Content-Type": "application/x-www-form-urlencoded"},
        ),
        Case(
            "create, and accept no JSON",
            "POST",
            "/connectors",
            {"name": "x", "config": msc},
            {**JSON, "Accept": "text/plain"},
        ),
        Case("create it stopped", "POST", "/connectors", {"name": "cpc", "config": cpc, "initial_state": "STOPPED"}),
        Case("create it by PUT", "PUT", "/connectors/hbc/config", hbc),
        Case(
            "change it by PUT",
            "PUT",
            "/connectors/hbc/config",
            {**hbc, "emit.heartbeats.interval.seconds": "5"},
            only=("name", "config", "type"),
        ),
        Case("PUT another name", "PUT", "/connectors/hbc/config", {**hbc, "name": "other"}),
        Case("PUT wrong values", "PUT", "/connectors/hbc/config", {**hbc, "emit.heartbeats.interval.seconds": "often"}),
        Case(
            "PUT a reference",
            "PUT",
            "/connectors/hbc/config",
            {**hbc, "emit.heartbeats.interval.seconds": "${env:HOME}"},
        ),
        Case("PUT what is no JSON", "PUT", "/connectors/hbc/config", "]"),
        Case("PUT a list", "PUT", "/connectors/hbc/config", [1]),
        # Asking
        Case("status, when it runs", "GET", "/connectors/msc/status", until=running(2)),
        Case("status of a stopped one", "GET", "/connectors/cpc/status", until=in_state("STOPPED", 0)),
        Case("status of the heartbeats", "GET", "/connectors/hbc/status", until=running(1)),
        Case("status of none", "GET", "/connectors/none/status"),
        Case("status of a name with a slash", "GET", "/connectors/no%2Fne/status"),
        Case("the names", "GET", "/connectors"),
        Case("all with status and information", "GET", "/connectors?expand=status&expand=info"),
        Case("all with information", "GET", "/connectors?expand=info"),
        Case("an unknown expansion", "GET", "/connectors?expand=nothing"),
        Case("a connector", "GET", "/connectors/msc"),
        Case("no connector", "GET", "/connectors/none"),
        Case("its configuration", "GET", "/connectors/hbc/config"),
        Case("the configuration of none", "GET", "/connectors/none/config"),
        Case("its tasks", "GET", "/connectors/msc/tasks", only=("id",)),
        Case("the tasks of a stopped one", "GET", "/connectors/cpc/tasks"),
        Case("the tasks of none", "GET", "/connectors/none/tasks"),
        Case("its tasks' configurations", "GET", "/connectors/msc/tasks-config", only=("keys",)),
        Case("the tasks' configurations of none", "GET", "/connectors/none/tasks-config"),
        Case("a task's status", "GET", "/connectors/msc/tasks/1/status"),
        Case("the status of no task", "GET", "/connectors/msc/tasks/7/status"),
        Case("the status of a task without a number", "GET", "/connectors/msc/tasks/x/status"),
        Case("the status of a task with two signs", "GET", "/connectors/msc/tasks/--5/status"),
        Case("the status of a task with a plus", "GET", "/connectors/msc/tasks/+1/status"),
        Case("the status of a task below the first", "GET", "/connectors/msc/tasks/-1/status"),
        Case("the status of a task that is no integer", "GET", "/connectors/msc/tasks/2147483648/status"),
        Case("the status of a task of none", "GET", "/connectors/none/tasks/0/status"),
        Case("its topics", "GET", "/connectors/msc/topics", until=lambda answer: bool(answer["msc"]["topics"])),  # type: ignore[index]
        Case("forget its topics", "PUT", "/connectors/cpc/topics/reset"),
        Case("the topics of one that wrote nothing", "GET", "/connectors/cpc/topics"),
        Case("the topics of none", "GET", "/connectors/none/topics"),
        Case("forget the topics of none", "PUT", "/connectors/none/topics/reset"),
        # Changing
        Case(
            "patch it", "PATCH", "/connectors/hbc/config", {"emit.heartbeats.interval.seconds": "7", "tasks.max": None}
        ),
        Case("as it is now", "GET", "/connectors/hbc/config"),
        Case(
            "change it, with a password",
            "PUT",
            "/connectors/hbc/config",
            {**hbc, "ssl.truststore.password": "never-shown"},
            only=("name", "config", "type"),
        ),
        Case("a configuration with a password", "GET", "/connectors/hbc/config"),
        Case("patch another name", "PATCH", "/connectors/hbc/config", {"name": "other"}),
        Case("change it back", "PUT", "/connectors/hbc/config", hbc, only=("name", "config", "type")),
        Case(
            "patch with a wrong value", "PATCH", "/connectors/hbc/config", {"emit.heartbeats.interval.seconds": "never"}
        ),
        Case("patch none", "PATCH", "/connectors/none/config", {"topics": "x"}),
        Case("pause", "PUT", "/connectors/msc/pause", headers={}),
        Case("status, when it is paused", "GET", "/connectors/msc/status", until=in_state("PAUSED", 2)),
        Case("pause it again", "PUT", "/connectors/msc/pause"),
        Case("pause none, with a body of no content type", "PUT", "/connectors/none/pause", {}, {}),
        Case("pause none", "PUT", "/connectors/none/pause"),
        Case("resume", "PUT", "/connectors/msc/resume"),
        Case("status, when it runs again", "GET", "/connectors/msc/status", until=running(2)),
        Case("resume none", "PUT", "/connectors/none/resume"),
        Case("restart", "POST", "/connectors/msc/restart", headers={}),
        Case("restart for another origin's page", "POST", "/connectors/msc/restart", headers=FOREIGN),
        Case("status after a restart", "GET", "/connectors/msc/status", until=running(2)),
        Case("restart with tasks", "POST", "/connectors/msc/restart?includeTasks=true", only=("name", "type")),
        Case("status after a restart with tasks", "GET", "/connectors/msc/status", until=running(2)),
        Case(
            "restart what has failed: nothing",
            "POST",
            "/connectors/msc/restart?includeTasks=true&onlyFailed=true",
            only=("name", "type"),
        ),
        Case(
            "restart only what has failed, without tasks",
            "POST",
            "/connectors/msc/restart?onlyFailed=true",
            only=("name", "type"),
        ),
        Case("restart with a word that is no boolean", "POST", "/connectors/msc/restart?includeTasks=perhaps"),
        Case("restart none", "POST", "/connectors/none/restart"),
        Case("restart none with tasks", "POST", "/connectors/none/restart?includeTasks=true"),
        Case("restart a task", "POST", "/connectors/msc/tasks/0/restart"),
        Case("status after a task's restart", "GET", "/connectors/msc/status", until=running(2)),
        Case("restart no task", "POST", "/connectors/msc/tasks/7/restart"),
        Case("restart a task of none", "POST", "/connectors/none/tasks/0/restart"),
        # Offsets
        Case("offsets of none", "GET", "/connectors/none/offsets"),
        Case("alter offsets while it runs", "PATCH", "/connectors/msc/offsets", offsets_of((at, {"offset": 1}))),
        Case("delete offsets while it runs", "DELETE", "/connectors/msc/offsets"),
        Case("stop", "PUT", "/connectors/msc/stop"),
        Case("status, when it is stopped", "GET", "/connectors/msc/status", until=in_state("STOPPED", 0)),
        Case("stop it again", "PUT", "/connectors/msc/stop"),
        Case("stop none", "PUT", "/connectors/none/stop"),
        Case(
            "alter offsets",
            "PATCH",
            "/connectors/msc/offsets",
            offsets_of((at, {"offset": 1}), ({**at, "partition": 1}, {"offset": 0})),
        ),
        Case("as they are now", "GET", "/connectors/msc/offsets"),
        Case("remove one", "PATCH", "/connectors/msc/offsets", offsets_of(({**at, "partition": 1}, None))),
        Case("as they are then", "GET", "/connectors/msc/offsets"),
        Case(
            "alter without a partition's cluster",
            "PATCH",
            "/connectors/msc/offsets",
            offsets_of(({"topic": "compared", "partition": 0}, {"offset": 1})),
        ),
        Case(
            "alter with a topic that is a number",
            "PATCH",
            "/connectors/msc/offsets",
            offsets_of(({**at, "topic": 3}, {"offset": 1})),
        ),
        Case(
            "alter a partition that is text",
            "PATCH",
            "/connectors/msc/offsets",
            offsets_of(({**at, "partition": "0"}, {"offset": 1})),
        ),
        Case(
            "alter a negative partition",
            "PATCH",
            "/connectors/msc/offsets",
            offsets_of(({**at, "partition": -1}, {"offset": 1})),
        ),
        Case("alter to a negative offset", "PATCH", "/connectors/msc/offsets", offsets_of((at, {"offset": -1}))),
        Case("alter to text", "PATCH", "/connectors/msc/offsets", offsets_of((at, {"offset": "1"}))),
        Case("alter without an offset", "PATCH", "/connectors/msc/offsets", offsets_of((at, {"position": 1}))),
        Case("alter no partition", "PATCH", "/connectors/msc/offsets", offsets_of((None, {"offset": 1}))),
        Case("alter nothing", "PATCH", "/connectors/msc/offsets", {"offsets": []}),
        Case("alter without offsets", "PATCH", "/connectors/msc/offsets", {}),
        Case("alter with what is no JSON", "PATCH", "/connectors/msc/offsets", "{"),
        Case("alter offsets of none", "PATCH", "/connectors/none/offsets", offsets_of((at, {"offset": 1}))),
        Case("delete offsets", "DELETE", "/connectors/msc/offsets"),
        Case("none are left", "GET", "/connectors/msc/offsets", until=names_no_deleted),
        Case("delete offsets of none", "DELETE", "/connectors/none/offsets"),
        Case(
            "alter a checkpoint's offset",
            "PATCH",
            "/connectors/cpc/offsets",
            offsets_of(({"group": "g", "topic": "compared", "partition": 0}, {"offset": 0})),
        ),
        Case(
            "alter a checkpoint's offset to another",
            "PATCH",
            "/connectors/cpc/offsets",
            offsets_of(({"group": "g", "topic": "compared", "partition": 0}, {"offset": 9})),
        ),
        Case(
            "alter a checkpoint's offset without a group",
            "PATCH",
            "/connectors/cpc/offsets",
            offsets_of(({"topic": "compared", "partition": 0}, {"offset": 0})),
        ),
        Case("create another version", "POST", "/connectors", {"name": "old", "config": {**hbc, VERSION: "1.0"}}),
        Case("create no version", "POST", "/connectors", {"name": "old", "config": {**hbc, VERSION: "[1.0"}}),
        # Deleting
        Case("delete", "DELETE", "/connectors/hbc"),
        Case("it is gone", "GET", "/connectors/hbc", until=is_gone),
        Case("its status is gone", "GET", "/connectors/hbc/status", until=is_gone),
        Case("delete it again", "DELETE", "/connectors/hbc"),
        Case("delete the checkpoints'", "DELETE", "/connectors/cpc"),
        Case("delete the source's", "DELETE", "/connectors/msc"),
        Case("none are left to list", "GET", "/connectors", until=lambda answer: answer == []),
        # Loggers
        Case("a logger", "GET", "/admin/loggers/root", only=("keys",)),
        Case("no logger", "GET", "/admin/loggers/no.such.logger"),
        Case("set a level", "PUT", "/admin/loggers/compared.logger", {"level": "DEBUG"}),
        Case("the level that was set", "GET", "/admin/loggers/compared.logger", only=("keys", "level")),
        Case("all loggers", "GET", "/admin/loggers", only=("compared.logger",)),
        Case("set an unknown level", "PUT", "/admin/loggers/compared.logger", {"level": "LOUD"}),
        Case("set no level", "PUT", "/admin/loggers/compared.logger", {}),
        Case("set it in lower case", "PUT", "/admin/loggers/compared.logger", {"level": "warn"}),
        Case("set it for the whole cluster", "PUT", "/admin/loggers/compared.logger?scope=cluster", {"level": "ERROR"}),
        Case("set it for an unknown scope", "PUT", "/admin/loggers/compared.logger?scope=galaxy", {"level": "INFO"}),
    ]
