"""Rules about the content of files: names, prefixes and values.

Each rule is one small function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkmirror.config.advice import TAKE_OUT
from sparkmirror.config.control_settings import CONTROL_SETTINGS
from sparkmirror.config.originals import is_secret
from sparkmirror.config.settings import FLOW_SETTINGS
from sparkmirror.formats import Note
from sparkmirror.formats.connect_files import ConnectorRole, readers
from sparkmirror.formats.placeholders import is_placeholder
from sparkmirror.formats.secrets import is_unknown
from sparkmirror.formats.strimzi import WORKERS_OWN
from sparkmirror.lint.client_rules import astray, broker_key, consumer_key
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot, at
from sparkmirror.lint.subject import Subject, bare

KNOWN_FACTORS = {
    setting.name for setting in (*FLOW_SETTINGS, *CONTROL_SETTINGS) if setting.name.endswith("replication.factor")
} | {f"{kind}.storage.replication.factor" for kind in ("config", "offset", "status")}

SHORT_S = 20
"""Interval in seconds below which polling loads the source.

The figure is the advice of AWS's kit, `aws-samples/mirrormaker2-msk-migration`.
"""

POLLING = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "sync.topic.configs.interval.seconds",
    "sync.topic.acls.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "sync.group.offsets.interval.seconds",
)


def unusable(subject: Subject) -> Iterator[Spot]:
    """Yield each mistake that stops the reading of the files."""
    for error in subject.error.mistakes if subject.error else ():
        path, _, line = error.origin.rpartition(", line ")
        number = int(line) if path and line.isdigit() else _line_of(subject, error.key)
        yield Spot(path or error.origin, number, error.key or "", error.reason)


def _line_of(subject: Subject, key: str | None) -> int:
    return next((entry.line for entry in reversed(subject.reading.entries) if entry.key == key), 0)


def placeholder(subject: Subject) -> Iterator[Spot]:
    for entry in subject.entries():
        # In a Strimzi resource rule `missing-secret` names the missing Secret.
        missing = subject.reading.format == "strimzi" and is_unknown(entry.value)
        if is_placeholder(entry.key, entry.value) and not missing:
            yield at(entry)


def misspelt_factor(subject: Subject) -> Iterator[Spot]:
    for entry in subject.entries():
        name = bare(entry.key)
        # A known factor may follow an alias, so that the end of the name is compared.
        if name.endswith("replication.factor") and not name.endswith(tuple(KNOWN_FACTORS - {"replication.factor"})):
            kind = name.removesuffix("replication.factor").rstrip(".")
            meant = next((factor for factor in sorted(KNOWN_FACTORS) if _alike(factor, name)), None)
            if meant or "topic" in kind or "storage" in kind:
                yield at(entry, f"did you mean {meant}?" if meant else "")


def _alike(known: str, name: str) -> bool:
    """Tell whether two names differ by an `s`, or by a dash for a dot, only.

    Examples are `heartbeat.topic…`, `offset-sync.topic…`, `offset.syncs.topic…`.
    """
    plain = [re.sub(r"s?[-.]", "", text) for text in (known, name)]
    return plain[0] == plain[1] and known != name


def short_interval(subject: Subject) -> Iterator[Spot]:
    for entry in subject.named(*POLLING):
        if entry.value.strip().isdigit() and 0 < int(entry.value) < SHORT_S:
            yield at(entry, f"{entry.value.strip()} s")


def replicator_key(subject: Subject) -> Iterator[Spot]:
    for entry in subject.entries():
        if re.search(r"(^|\.)(source|target|src|dest)\.kafka\.", entry.key):
            yield at(entry)


def unprefixed_security(subject: Subject) -> Iterator[Spot]:
    # A Strimzi resource has fields for security; the reading's own warning names these.
    for _, connectors in subject.connectors() if subject.reading.format == "connectors" else ():
        for connector in connectors.values():
            for key, entry in connector.settings.items():
                if key == "security.protocol" or key.startswith(("ssl.", "sasl.")):
                    yield at(entry)


def literal_secret(subject: Subject) -> Iterator[Spot]:
    seen = set()
    for entry in subject.entries():
        name = bare(entry.key)
        # The name of a class is no secret, nor is a JAAS line without a password.
        shown = "class" in name or ("jaas" in name and not re.search("password|secret", entry.value, re.IGNORECASE))
        elsewhere = "${" in entry.value or is_unknown(entry.value)
        if is_secret(name) and entry.value.strip() and not elsewhere and not shown:
            spot = at(entry)
            if spot not in seen:
                seen.add(spot)
                yield spot


def policy_mismatch(subject: Subject) -> Iterator[Spot]:
    for note in subject.reading.notes:
        if note.kind == "mismatch":
            yield Spot(note.path, note.line, note.key)


def misplaced(subject: Subject) -> Iterator[Spot]:
    for note in subject.reading.notes:
        if note.kind == "misplaced" and not _said_by_reader(subject, note):
            yield Spot(note.path, note.line, note.key, note.reason)


def _said_by_reader(subject: Subject, note: Note) -> bool:
    """Tell whether the flow's connector that reads the key has the same value."""
    for _, connectors in subject.connectors():
        holders = [
            connector
            for connector in connectors.values()
            if connector.path == note.path and note.key in connector.settings
        ]
        readers_there = [connector for role, connector in connectors.items() if role in readers(note.key)]
        for holder in holders:
            if any(
                connector.text(note.key) == holder.text(note.key) and note.key in connector.settings
                for connector in readers_there
            ):
                return True
    return False


def no_target_alias(subject: Subject) -> Iterator[Spot]:
    for _, connectors in subject.connectors():
        for connector in connectors.values():
            if "target.cluster.alias" not in connector.settings:
                yield Spot(connector.path, 0, "target.cluster.alias", connector.name)


def no_checkpoint_connector(subject: Subject) -> Iterator[Spot]:
    for flow, connectors in subject.connectors():
        if ConnectorRole.SOURCE in connectors and ConnectorRole.CHECKPOINT not in connectors:
            yield at(connectors[ConnectorRole.SOURCE].settings["connector.class"], "->".join(flow))


def shared_workers(subject: Subject) -> Iterator[Spot]:
    seen: dict[tuple[str, str], str] = {}
    for resource, cluster in zip(subject.reading.resources, subject.reading.connect, strict=False):
        settings = cluster.worker.settings if cluster.worker is not None else {}
        for field, (name, _) in WORKERS_OWN.items():
            entry = settings.get(name)
            if entry is None:
                continue
            owner = seen.setdefault((f"{resource.target}.{field}", entry.value), resource.name)
            if owner != resource.name:
                key = f"spec.target.{field}" if "target" in resource.document["spec"] else name
                yield at(entry, f"{entry.value} of {resource.name} and of {owner}", key)


def old_api(subject: Subject) -> Iterator[Spot]:
    for resource in subject.reading.resources:
        if str(resource.document.get("apiVersion")).endswith("v1beta2"):
            yield Spot(resource.path, 1, "apiVersion")


def said_otherwise(subject: Subject) -> Iterator[Spot]:
    yield from _warnings(subject, idle=False)


def no_effect(subject: Subject) -> Iterator[Spot]:
    yield from _warnings(subject, idle=True)
    for note in subject.reading.notes:
        if note.kind == "misplaced" and _said_by_reader(subject, note):
            yield Spot(note.path, note.line, note.key, "the connector that reads it says the same")
    for setting in astray(subject):
        if setting.stated:
            yield at(setting.entry, f"{setting.stated} counts")


def _warnings(subject: Subject, *, idle: bool) -> Iterator[Spot]:
    """Yield the reading's own warnings, except those that another rule words better."""
    told = {str(note) for note in subject.reading.notes if note.kind in ("mismatch", "misplaced", "secret")}
    spots = {(entry.where, entry.key): entry for entry in subject.reading.entries}
    better = {(spot.path, spot.line, spot.key) for rule in _SAY_IT_BETTER for spot in rule(subject)}
    better |= {at(setting.entry)[:3] for setting in astray(subject)}
    for text in subject.config.warnings if subject.config else ():
        # Idle keys are known to Kafka, with a place in MirrorMaker 2; other keys were probably meant otherwise.
        if text in told or (_IDLE.search(text) is not None) is not idle:
            continue
        place, key, reason = [*text.split(": ", 2), "", ""][:3]
        entry = spots.get((place, key))
        path, _, line = place.rpartition(", line ")
        number = entry.line if entry else int(line) if line.isdigit() else 0
        own = subject.own_key(key)
        if (path or place, number, own) not in better:
            yield Spot(
                path or place, number, own, reason.removeprefix("has no effect: ").replace(f": {TAKE_OUT}", ": ")
            )


_IDLE = re.compile(rf": has no effect: |: {TAKE_OUT}")
_SAY_IT_BETTER = (misspelt_factor, replicator_key, broker_key, consumer_key, unprefixed_security)

_ERROR, _WARNING, _INFO = LintSeverity.ERROR, LintSeverity.WARNING, LintSeverity.INFO

FILE_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        "unusable",
        _ERROR,
        "this can't be run",
        "sparkmirror stops at it; where MirrorMaker 2 would go on, it would do something else than is written",
        "as the reason says",
        unusable,
    ),
    LintRule(
        "placeholder",
        _ERROR,
        "is still a template's placeholder",
        "the cluster can't be reached, or sign-in fails",
        "write the real value",
        placeholder,
    ),
    LintRule(
        "misspelt-factor",
        _ERROR,
        "is no known replication factor",
        "the topic meant is made with the default, 3 for internal topics: on fewer brokers that fails for ever",
        "spell the key as docs/configuration.md does",
        misspelt_factor,
    ),
    LintRule(
        "policy-mismatch",
        _ERROR,
        "source and checkpoint connector say different things",
        "MirrorMaker 2 translates groups for topics that are not there, so no group's offsets ever arrive",
        "write the same into both",
        policy_mismatch,
    ),
    LintRule(
        "misplaced",
        _WARNING,
        "stands in a connector that does not read it",
        "it has no effect",
        "move it into the connector that does",
        misplaced,
    ),
    LintRule(
        "replicator-key",
        _WARNING,
        "is a key of Confluent Replicator's",
        "MirrorMaker 2 ignores it: the connection is made without it",
        "write source.cluster. or target.cluster. before the name, of security.protocol as well",
        replicator_key,
    ),
    LintRule(
        "unprefixed-security",
        _WARNING,
        "is for neither cluster",
        "it has no effect: connections are in clear text and without sign-in",
        "write source.cluster. or target.cluster. before the name, of security.protocol as well",
        unprefixed_security,
    ),
    LintRule(
        "short-interval",
        _WARNING,
        f"polls the clusters more often than every {SHORT_S} s",
        "topics, groups, offsets, properties or ACLs are all read each time: that loads controllers and coordinators",
        f"write {SHORT_S} or more; new topics and groups are rare, and a move can wait as long",
        short_interval,
    ),
    LintRule(
        "no-target-alias",
        _WARNING,
        "is missing, and so is `target`",
        "internal topics are named after `target`, and another tool's are not found again",
        "write target.cluster.alias, the same in all connectors",
        no_target_alias,
    ),
    LintRule(
        "shared-workers",
        _ERROR,
        "is the same in two resources at one target",
        "their Connect workers form one group and overwrite each other's connectors and offsets",
        "give each resource a group and topics of its own, and a file of its own here",
        shared_workers,
    ),
    LintRule(
        "said-otherwise",
        _WARNING,
        "was probably meant otherwise",
        "it does nothing, or something else than it seems to",
        "as the reason says",
        said_otherwise,
    ),
    LintRule(
        "no-checkpoint-connector",
        _INFO,
        "this flow has no checkpoint connector",
        "no group's offsets are translated: consumers begin anew at the target",
        "add one with the same policy, if consumers are to move",
        no_checkpoint_connector,
    ),
    LintRule(
        "literal-secret",
        _INFO,
        "is a secret in clear",
        "every reader of the file knows it, and on a Spark cluster it travels",
        "write a reference to a config provider, such as ${file:/path:key}",
        literal_secret,
    ),
    LintRule(
        "old-api",
        _INFO,
        "is v1beta2",
        "Strimzi 1.0 and later don't take it",
        "sparkmirror convert --to strimzi writes v1",
        old_api,
    ),
    LintRule(
        "no-effect",
        _INFO,
        "has no effect",
        "none",
        "take it out, or leave it for MirrorMaker 2",
        no_effect,
    ),
)
