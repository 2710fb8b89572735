"""Clusters and flows of a migration, with connections kept between looks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.acls import Acl
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.missing_rights import principal
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.migrate.file import MigrationFile
from sparkmirror.migrate.observation import Side
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator
from sparkmirror.mirror.sync.migration_words import MigrationWords
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.pump.messages.control import control_topic

ROLE = "sparkmirror-migration"


def flows_of(file: MigrationFile, config: MirrorConfig) -> dict[Side, FlowConfig]:
    """Return the migration's flows by the side that they copy from.

    The flow back is there only if the file has one.

    Raises `ConfigError`.
    """
    forth = begins(config, file.flow, file.name)
    ends = forth.target.alias, forth.source.alias
    back = next((flow for flow in config.flows if (flow.source.alias, flow.target.alias) == ends), None)
    return {Side.SOURCE: forth} | ({Side.TARGET: back} if back is not None else {})


def begins(config: MirrorConfig, wanted: str, origin: str) -> FlowConfig:
    """Return the flow that a migration begins with.

    It is the named one, the only one, or the one whose turn is `first`. Raises `ConfigError`.
    """
    flow = _named(config, wanted, origin)
    if flow.turn == "second":
        first = f"{flow.target.alias}->{flow.source.alias}"
        why = f"{flow.name} has sparkmirror.turn = second, and a migration begins with turn = first: name {first}"
        raise ConfigError(why, origin=origin, key="flow")
    return flow


def _named(config: MirrorConfig, wanted: str, origin: str) -> FlowConfig:
    names = ", ".join(flow.name for flow in config.flows)
    if wanted:
        named = next((flow for flow in config.flows if flow.name == wanted), None)
        if named is None:
            raise ConfigError(f"{config.path} has no such flow; it has {names}", origin=origin, key="flow")
        return named
    first = config.flows if len(config.flows) == 1 else [flow for flow in config.flows if flow.turn == "first"]
    if len(first) != 1:
        raise ConfigError(f"{config.path} has several flows: {names}; name one", origin=origin, key="flow")
    return first[0]


class Pair:
    """Clusters of a migration, and the words and maps read from them so far.

    For one thread; a context manager.
    """

    def __init__(self, flows: Mapping[Side, FlowConfig]) -> None:
        self.flows = flows
        self._stack = ExitStack()
        forth = flows[Side.SOURCE]
        self.configs: Mapping[Side, ClusterConfig] = {Side.SOURCE: forth.source, Side.TARGET: forth.target}
        self.clients = {
            side: self._stack.enter_context(closing(ClusterClient(config, ROLE)))
            for side, config in self.configs.items()
        }
        self.rules: Mapping[Side, TopicRules] = {side: topic_rules(flow) for side, flow in flows.items()}
        self.translators = {
            side: self._stack.enter_context(ApplicationTranslator.of(flow)) for side, flow in flows.items()
        }
        self.controls = {
            side: TopicLog(self.clients[side.other], control_topic(flow.source.alias), may_be_absent=True)
            for side, flow in flows.items()
        }
        """Control topics, by the side that the flow copies from."""
        self.words = {side: MigrationWords(log) for side, log in self.controls.items()}
        there = MigrationWords(self.controls[Side.SOURCE], there=True)
        self.on_acls: Mapping[Side, tuple[MigrationWords, ...]] = {
            Side.SOURCE: (self.words[Side.SOURCE],),
            Side.TARGET: (*(words for side, words in self.words.items() if side is Side.TARGET), there),
        }
        """Words on the ACLs at a side: the first take new words.

        The first flow has words on the target, too, from times when nothing flowed back.
        """
        self.named = {side: principal(config) for side, config in self.configs.items()}
        """The mirror's own principals, as its settings name them.

        Empty where brokers map a certificate or a token.
        """

    def copy_of(self, side: Side, topic: str) -> str:
        """Return the name that a topic of `side` has at the other side."""
        rules = self.rules.get(side)
        return rules.remote_name(topic) if rules else topic

    def own(self, side: Side) -> str:
        """Return the mirror's own principal; empty: unknown.

        Its settings name it, or the last trial has found it.
        """
        return self.named[side] or next((words.own for words in self.on_acls[side] if words.own), "")

    def denials(self, side: Side) -> dict[str, tuple[Acl, ...]]:
        """Read on; return what this migration denies at a side, by key.

        Raises `ConnectionError`s.
        """
        denials: dict[str, tuple[Acl, ...]] = {}
        for words in self.on_acls[side]:
            for key, acls in words.read().items():
                denials[key] = (*denials.get(key, ()), *acls)
        return denials

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
