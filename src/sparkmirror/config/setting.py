"""A setting's definition: name, kind, meaning, and the keys to write it under.

A scope is a list of key templates: `{source}` and `{target}` are aliases, `{name}` is the setting's name. In a scope
with several templates the strongest comes first (`mm2.md` section 1.6, and tried with MirrorMaker 2 4.3.1: a cluster's
own `consumer.` beats the flow's, because it becomes `source.consumer.`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from pydantic import BaseModel, SecretStr

from sparkmirror.values import ValueKind

FLOW = "{source}->{target}."


class KeyScope(Enum):
    """Places for a setting, the strongest key first."""

    CONNECTOR = (FLOW + "{name}", "{name}")
    WORKER = ("{target}.{name}",)
    STORAGE = ("{name}", "{target}.{name}")
    CONSUMER = (FLOW + "source.consumer.{name}", "{source}.consumer.{name}", FLOW + "consumer.{name}")
    PRODUCER = (FLOW + "producer.override.{name}", "{target}.producer.{name}")
    SOURCE_ADMIN = (FLOW + "source.admin.{name}", "{source}.admin.{name}", FLOW + "admin.{name}")
    TARGET_ADMIN = (FLOW + "target.admin.{name}", "{target}.admin.{name}", FLOW + "admin.{name}")
    ALONE = ("{name}",)
    PAIR = (FLOW + "{name}",)
    SOURCE = ("{source}.{name}", "{name}")
    TARGET = ("{target}.{name}", "{name}")
    # Client access (`mm2.md` section 1.6): a cluster's own key counts for each of its clients, before a flow's key.
    SOURCE_ADMIN_ACCESS = (
        FLOW + "source.admin.{name}",
        "{source}.admin.{name}",
        "{source}.{name}",
        "{name}",
        FLOW + "admin.{name}",
        FLOW + "source.cluster.{name}",
    )
    SOURCE_CONSUMER_ACCESS = (
        FLOW + "source.consumer.{name}",
        "{source}.consumer.{name}",
        "{source}.{name}",
        "{name}",
        FLOW + "consumer.{name}",
        FLOW + "source.cluster.{name}",
    )
    TARGET_ADMIN_ACCESS = (
        FLOW + "target.admin.{name}",
        "{target}.admin.{name}",
        "{target}.{name}",
        "{name}",
        FLOW + "admin.{name}",
        FLOW + "target.cluster.{name}",
    )
    TARGET_PRODUCER_ACCESS = (
        FLOW + "producer.override.{name}",
        "{target}.producer.{name}",
        "{target}.{name}",
        "{name}",
    )

    def keys(self, name: str, source: str, target: str) -> list[str]:
        """Return the keys that set `name` for the flow `source->target`, strongest first."""
        return [template.format(source=source, target=target, name=name) for template in self.value]

    def general(self, name: str, source: str, target: str) -> str:
        """Return the strongest key that reaches beyond this flow.

        Without such a key, the strongest of all.
        """
        if self in (KeyScope.SOURCE_ADMIN_ACCESS, KeyScope.TARGET_ADMIN_ACCESS):
            return f"{source if self is KeyScope.SOURCE_ADMIN_ACCESS else target}.{name}"
        keys = self.keys(name, source, target)
        return next((key for key in keys if "->" not in key), keys[0])


ADMIN_PLACES = {KeyScope.SOURCE: KeyScope.SOURCE_ADMIN, KeyScope.TARGET: KeyScope.TARGET_ADMIN}
"""Place where a cluster's admin clients have settings, by the cluster's own place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Setting that this release obeys: MirrorMaker 2's, or sparkmirror's own.

    Names for sparkmirror's own settings start with `sparkmirror.`.
    """

    name: str
    kind: ValueKind
    place: KeyScope
    doc: str
    origin: str
    """Definition: the section in `mm2.md`, Kafka's own class or the page in `docs`."""
    model: type[BaseModel] | None = None
    renamed: str = ""
    """Field in `model`, if it isn't the name with underscores."""

    @property
    def field(self) -> str:
        return self.renamed or self.name.replace(".", "_").replace("-", "_")

    @property
    def secret(self) -> bool:
        return isinstance(self.default, SecretStr)

    @property
    def default(self) -> object:
        """Value if no key sets it; None if a default has no meaning."""
        return self.model.model_fields[self.field].default if self.model else None


def for_place(settings: tuple[Setting, ...], place: KeyScope) -> tuple[Setting, ...]:
    """Return the same settings for another place, such as the other cluster."""
    return tuple(replace(setting, place=place) for setting in settings)
