"""Planned changes at the other cluster: frozen values, with lines and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sparkmirror.kafka.cluster.acls import Acl
from sparkmirror.kafka.cluster.log_sizes import DiskSpace
from sparkmirror.mirror.sync.missing_acls import ScramUser


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCopy:
    """A topic that will be created."""

    name: str
    partitions: int
    replication_factor: int
    """-1: the cluster's default."""
    configs: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""
    """Reason why the brokers would not create it; empty if they would."""
    unknown: tuple[str, ...] = ()
    """Properties that its brokers don't know, so that the copy goes without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedValue:
    """A value that will be another: a topic's property, its partitions, or a quota."""

    of: str
    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Amounts that are copied, and that are left to copy."""

    there: int
    """Bytes that the copies have, as their leaders store them."""
    left: int
    """Bytes at the source that the copies lack.

    Reckoned by offsets, with the mean record size in each partition.
    """
    bytes_per_s: float = 0.0
    """The mirror's present rate; 0: no mirror works, or it has nothing to do."""
    needed: int = 0
    """Bytes that all replicas of the copies will take in addition."""
    disk: DiskSpace | None = None
    """Space at the target; None: its brokers do not tell."""

    @property
    def seconds(self) -> float | None:
        """Seconds until all is copied at the present rate; None without a rate."""
        return self.left / self.bytes_per_s if self.bytes_per_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChanges:
    """Changes at the target, and the things that a person has to do there."""

    target: str
    created: tuple[MissingCopy, ...] = ()
    changed: tuple[ChangedValue, ...] = ()
    """Topics' partitions and properties."""
    acls: tuple[Acl, ...] = ()
    """ACLs that the clients need there and that are missing, without rights to write."""
    writers: tuple[str, ...] = ()
    """Principals whose rights to write wait for the switch."""
    quotas: tuple[ChangedValue, ...] = ()
    users: tuple[ScramUser, ...] = ()
    """Users that no tool can copy."""
    volume: Volume
    untold: tuple[str, ...] = ()
    """Lines on each thing that could not be compared, with the reason."""

    @property
    def for_people(self) -> int:
        """Number of things that a person has to do."""
        refused = sum(bool(topic.refused) for topic in self.created)
        return refused + len(self.users) + len(self.untold) + self._lacks_space

    @property
    def _lacks_space(self) -> bool:
        disk = self.volume.disk
        return disk is not None and self.volume.needed > disk.free

    def lines(self) -> list[str]:
        """Return the plan in lines: `+` is created, `~` is changed, `!` needs a person."""
        told = [*self._topics(), *self._access()]
        head = [f"At {self.target} will be created or changed:" if told else f"Nothing is missing at {self.target}."]
        people = self.for_people
        things = "nothing needs" if not people else "1 thing needs" if people == 1 else f"{people} things need"
        return [*head, *(f"  {line}" for line in told), *self._volume(), f"Nothing was written; {things} a person (!)."]

    def _topics(self) -> list[str]:
        told = []
        for topic in self.created:
            factor = "the default" if topic.replication_factor < 0 else str(topic.replication_factor)
            configs = "".join(f", {name}={value}" for name, value in topic.configs.items())
            words = f"topic {topic.name:<24} {topic.partitions} partitions, replication factor {factor}{configs}"
            told.append(f"! {words}: {topic.refused}" if topic.refused else f"+ {words}")
            if topic.unknown:
                told.append(f"  without {', '.join(topic.unknown)}, which its brokers don't know")
        return [*told, *(f"~ topic {change.of:<24} {change}" for change in self.changed)]

    def _access(self) -> list[str]:
        told = []
        if self.acls or self.writers:
            waiting = f" (write rights of {len(self.writers)} principals wait for the switch)" if self.writers else ""
            told.append(f"+ {len(self.acls)} ACLs{waiting}; `sparkmirror acls --missing` prints them")
        told += [f"~ quota of {change.of}: {change}" for change in self.quotas]
        told += [f"! user {user.name}: {user.mechanism}: no API tells its password; create it" for user in self.users]
        return [*told, *(f"! {line}" for line in self.untold)]

    def _volume(self) -> list[str]:
        volume = self.volume
        seconds = volume.seconds
        rate = "no rate is known" if seconds is None else f"{seconds:,.0f} s at {_amount(volume.bytes_per_s)}/s"
        told = [f"Copying: {_amount(volume.there)} are at {self.target}, {_amount(volume.left)} to go ({rate})."]
        mark = "! " if self._lacks_space else ""
        disk = (
            "its brokers do not tell how much is free" if volume.disk is None else f"{_amount(volume.disk.free)} free"
        )
        return [*told, f"{mark}Disk needed at {self.target}: {_amount(volume.needed)}; {disk}."]

    def to_json(self) -> dict[str, Any]:
        """Return all values as JSON has them; ACLs and users in words."""
        told = asdict(self)
        told["acls"] = [str(acl) for acl in self.acls]
        told["users"] = [{"name": user.name, "mechanism": user.mechanism} for user in self.users]
        told["created"] = [{**asdict(topic), "configs": dict(topic.configs)} for topic in self.created]
        disk = self.volume.disk
        told["volume"] |= {"seconds": self.volume.seconds, "disk": disk._asdict() if disk else None}
        return {**told, "for_people": self.for_people}


def _amount(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"
