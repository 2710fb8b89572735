"""Rules about files' content: names, prefixes and values.

Each rule is one small function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkmirror.config.advice import TAKE_OUT
from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.formats import Note
from sparkmirror.config.formats.connect_files import ConnectorRole, readers
from sparkmirror.config.formats.files import KIND
from sparkmirror.config.formats.placeholders import is_placeholder
from sparkmirror.config.formats.secrets import is_unknown
from sparkmirror.config.formats.strimzi import WORKERS_OWN
from sparkmirror.config.originals import is_secret
from sparkmirror.config.settings import FLOW_SETTINGS
from sparkmirror.lint.client_rules import astray, broker_key, consumer_key
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot, at
from sparkmirror.lint.subject import Subject, bare

KNOWN_FACTORS = {
    setting.name for setting in (*FLOW_SETTINGS, *DUTY_SETTINGS) if setting.name.endswith("replication.factor")
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
        yield Spot(path=path or error.origin, line=number, key=error.key or "", detail=error.reason)


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
            yield Spot(path=note.path, line=note.line, key=note.key)


def misplaced(subject: Subject) -> Iterator[Spot]:
    for note in subject.reading.notes:
        if note.kind == "misplaced" and not _said_by_reader(subject, note):
            yield Spot(path=note.path, line=note.line, key=note.key, detail=note.reason)


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
                yield Spot(path=connector.path, line=0, key="target.cluster.alias", detail=connector.name)


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
    for document in subject.reading.documents:
        if document.tree.get("kind") == KIND and str(document.tree.get("apiVersion")).endswith("v1beta2"):
            yield Spot(path=document.path, line=document.line("apiVersion"), key="apiVersion")


def said_otherwise(subject: Subject) -> Iterator[Spot]:
    yield from _warnings(subject, idle=False)


def no_effect(subject: Subject) -> Iterator[Spot]:
    yield from _warnings(subject, idle=True)
    for note in subject.reading.notes:
        if note.kind == "misplaced" and _said_by_reader(subject, note):
            yield Spot(path=note.path, line=note.line, key=note.key, detail="the connector that reads it says the same")
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
                path=path or place,
                line=number,
                key=own,
                detail=reason.removeprefix("has no effect: ").replace(f": {TAKE_OUT}", ": "),
            )


_IDLE = re.compile(rf": has no effect: |: {TAKE_OUT}")
_SAY_IT_BETTER = (misspelt_factor, replicator_key, broker_key, consumer_key, unprefixed_security)

_ERROR, _WARNING, _INFO = LintSeverity.ERROR, LintSeverity.WARNING, LintSeverity.INFO

FILE_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        name="unusable",
        severity=_ERROR,
        what="this can't be run",
        effect="sparkmirror stops at it; where MirrorMaker 2 would continue, it would do something else than written",
        fix="as the reason says",
        look=unusable,
    ),
    LintRule(
        name="placeholder",
        severity=_ERROR,
        what="is still a template's placeholder",
        effect="the cluster can't be reached, or sign-in fails",
        fix="write the real value; for ${NAME} sparkmirror convert --fill does it (docs/cli.md)",
        look=placeholder,
    ),
    LintRule(
        name="misspelt-factor",
        severity=_ERROR,
        what="is no known replication factor",
        effect="the topic meant is made with the default, 3 for internal topics: on fewer brokers that fails for ever",
        fix="spell the key as docs/configuration.md does",
        look=misspelt_factor,
    ),
    LintRule(
        name="policy-mismatch",
        severity=_ERROR,
        what="source and checkpoint connector say different things",
        effect="MirrorMaker 2 translates groups for topics that are not there, so no group's offsets ever arrive",
        fix="write the same into both",
        look=policy_mismatch,
    ),
    LintRule(
        name="misplaced",
        severity=_WARNING,
        what="is in a connector that does not read it",
        effect="it has no effect",
        fix="move it into the connector that does",
        look=misplaced,
    ),
    LintRule(
        name="replicator-key",
        severity=_WARNING,
        what="is a key of Confluent Replicator's",
        effect="MirrorMaker 2 ignores it: the connection is made without it",
        fix="write source.cluster. or target.cluster. before the name, of security.protocol as well",
        look=replicator_key,
    ),
    LintRule(
        name="unprefixed-security",
        severity=_WARNING,
        what="is for neither cluster",
        effect="it has no effect: connections are in clear text and without sign-in",
        fix="write source.cluster. or target.cluster. before the name, of security.protocol as well",
        look=unprefixed_security,
    ),
    LintRule(
        name="short-interval",
        severity=_WARNING,
        what=f"polls the clusters more often than every {SHORT_S} s",
        effect="topics, groups, offsets, properties or ACLs are all read each time: that loads controllers and "
        "coordinators",
        fix=f"write {SHORT_S} or more; new topics and groups are rare, and a move can wait as long",
        look=short_interval,
    ),
    LintRule(
        name="no-target-alias",
        severity=_WARNING,
        what="is missing, and so is `target`",
        effect="internal topics are named after `target`, and another tool's are not found again",
        fix="write target.cluster.alias, the same in all connectors",
        look=no_target_alias,
    ),
    LintRule(
        name="shared-workers",
        severity=_ERROR,
        what="is the same in two resources at one target",
        effect="their Connect workers form one group and overwrite each other's connectors and offsets",
        fix="give each resource a group and topics of its own, and a file of its own here",
        look=shared_workers,
    ),
    LintRule(
        name="said-otherwise",
        severity=_WARNING,
        what="was probably meant otherwise",
        effect="it does nothing, or something else than it seems to",
        fix="as the reason says",
        look=said_otherwise,
    ),
    LintRule(
        name="no-checkpoint-connector",
        severity=_INFO,
        what="this flow has no checkpoint connector",
        effect="no group's offsets are translated: consumers start over at the target",
        fix="add one with the same policy, if consumers are to move",
        look=no_checkpoint_connector,
    ),
    LintRule(
        name="literal-secret",
        severity=_INFO,
        what="is a secret in clear",
        effect="every reader of the file knows it, and on a Spark cluster it travels",
        fix="write a reference to a config provider, such as ${file:/path:key}",
        look=literal_secret,
    ),
    LintRule(
        name="old-api",
        severity=_INFO,
        what="is v1beta2",
        effect="Strimzi 1.0 and later don't take it",
        fix="sparkmirror convert --to strimzi writes v1",
        look=old_api,
    ),
    LintRule(
        name="no-effect",
        severity=_INFO,
        what="has no effect",
        effect="none",
        fix="take it out, or leave it for MirrorMaker 2",
        look=no_effect,
    ),
)
