"""What a setting is: its name, kind and meaning, and the keys that it can be written under.

A place is a key's template: `{source}` and `{target}` are aliases, `{name}` is the setting's name.
Where several places count, the strongest comes first (`mm2.md` section 1.6, and tried with
MirrorMaker 2 4.3.1: a cluster's own `consumer.` beats the flow's, because it becomes `source.consumer.`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from pydantic import BaseModel, SecretStr

from sparkmirror.config.values import ValueKind

FLOW = "{source}->{target}."


class KeyScope(Enum):
    """Where a setting can be written, the strongest key first."""

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
    # How a client connects (`mm2.md` section 1.6): a cluster's own key is also each of its clients', before a flow's.
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
        """The keys that set `name` for the flow `source->target`, the strongest first."""
        return [template.format(source=source, target=target, name=name) for template in self.value]

    def general(self, name: str, source: str, target: str) -> str:
        """The strongest key that is not for this one flow only, if there is one."""
        if self in (KeyScope.SOURCE_ADMIN_ACCESS, KeyScope.TARGET_ADMIN_ACCESS):
            return f"{source if self is KeyScope.SOURCE_ADMIN_ACCESS else target}.{name}"
        keys = self.keys(name, source, target)
        return next((key for key in keys if "->" not in key), keys[0])


ADMIN_PLACES = {KeyScope.SOURCE: KeyScope.SOURCE_ADMIN, KeyScope.TARGET: KeyScope.TARGET_ADMIN}
"""Where a cluster's settings stand, and where those of its admin clients do."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that this release obeys: MirrorMaker 2's, or our own, which start with `sparkmirror.`."""

    name: str
    kind: ValueKind
    place: KeyScope
    doc: str
    origin: str
    """The section of `mm2.md`, Kafka's own class or the page in `docs` that defines it."""
    model: type[BaseModel] | None = None
    renamed: str = ""
    """The field of `model`, if it isn't the name with underscores."""

    @property
    def field(self) -> str:
        """The model's field that holds this setting."""
        return self.renamed or self.name.replace(".", "_").replace("-", "_")

    @property
    def secret(self) -> bool:
        """Whether its value must not be seen by others."""
        return isinstance(self.default, SecretStr)

    @property
    def default(self) -> object:
        """What counts if no key sets it; None if that has no meaning."""
        return self.model.model_fields[self.field].default if self.model else None


def for_place(settings: tuple[Setting, ...], place: KeyScope) -> tuple[Setting, ...]:
    """The same settings, of the other cluster."""
    return tuple(replace(setting, place=place) for setting in settings)
