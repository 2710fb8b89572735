"""What became of a round's records: in the logs of both clusters, and in the groups' hands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from chaos.switches.arena import SOURCE, TARGET
from chaos.switches.records import STRAY, Ack, History, Kept, number_of, origin_of, out_of_order

_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A logical topic: what producers write to by this name at either cluster."""

    name: str
    partitions: int
    keys: int
    compacted: bool = False
    transactional: bool = False
    copies: Mapping[str, str]
    """By the alias where a record was born: the name of its copies at the other cluster."""

    def places(self, alias: str) -> Mapping[str, str]:
        """Return the topics at a cluster, by the alias where their records were born; with kept names it is one."""
        return {alias: self.name, _other(alias): self.copies[_other(alias)]}

    @property
    def keeps_name(self) -> bool:
        """True if copies have the topic's own name."""
        return self.copies[SOURCE] == self.name


Dumps = Mapping[tuple[str, str], Mapping[int, list[Kept]]]
"""Records by alias and topic, and partition."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something wrong."""

    what: str
    """`lost`, `twice`, `reordered`, `alien`, `differs`, `unread`, `read twice`, `read reordered` or `read alien`."""
    where: str
    words: str

    @property
    def may_pass(self) -> bool:
        """True if it is right as long as something is on its way."""
        return self.what in ("lost", "unread", "differs")

    def __str__(self) -> str:
        return f"{self.what}: {self.where}: {self.words}"


def check(history: History, topics: Iterable[Topic], dumps: Dumps, groups: Mapping[str, list[Topic]]) -> list[Found]:
    """Return all that is wrong; stragglers are looked at by `strays_at`."""
    return list(_check(history, list(topics), dumps, groups))


def strays_at(history: History, topic: Topic, dumps: Dumps) -> Iterator[tuple[Ack, int, int]]:
    """Yield each straggler of a topic, how often it is in its own cluster's log, and how often at the other."""
    for ack in history.acks:
        if ack.producer != STRAY or ack.topic != topic.name:
            continue
        other = _other(ack.alias)
        here = dumps[ack.alias, topic.name].get(ack.partition, [])
        there = dumps[other, topic.copies[ack.alias]].get(ack.partition, [])
        yield ack, sum(each.value == ack.value for each in here), sum(each.value == ack.value for each in there)


def _other(alias: str) -> str:
    return TARGET if alias == SOURCE else SOURCE


def _check(history: History, topics: list[Topic], dumps: Dumps, groups: Mapping[str, list[Topic]]) -> Iterator[Found]:
    committed = [ack for ack in history.committed() if ack.producer != STRAY]
    unknown = history.unknown()
    for topic in topics:
        acks = [ack for ack in committed if ack.topic == topic.name]
        for alias in (SOURCE, TARGET):
            yield from _logs(topic, alias, acks, dumps, unknown)
        yield from _contents(topic, dumps)
    for group, theirs in groups.items():
        for topic in theirs:
            acks = [ack for ack in committed if ack.topic == topic.name]
            yield from _reads(history, group, topic, acks, unknown)


def _logs(topic: Topic, alias: str, acks: list[Ack], dumps: Dumps, unknown: set[str]) -> Iterator[Found]:
    names = dict.fromkeys(topic.places(alias).values())
    where = f"{topic.name} at {alias}"
    counts: Counter[str] = Counter()
    for name in names:
        for log in dumps[alias, name].values():
            values = [each.value for each in log if origin_of(each.value).partition("-")[0] != STRAY]
            counts.update(values)
            yield from _told("reordered", where, out_of_order(values))
    known = {ack.value for ack in acks}
    wanted = _last_of_keys(acks, topic) if topic.compacted else known
    yield from _told("lost", where, [value for value in wanted if not counts[value]])
    yield from _told("twice", where, [value for value, count in counts.items() if count > 1])
    yield from _told("alien", where, [value for value in counts if value not in known and value not in unknown])


def _contents(topic: Topic, dumps: Dumps) -> Iterator[Found]:
    """Compare records by their bytes and timestamps; offsets, too, where both logs are dense."""
    for born in (SOURCE,) if topic.keeps_name else (SOURCE, TARGET):
        ours, copies = dumps[born, topic.name], dumps[_other(born), topic.copies[born]]
        for partition in range(topic.partitions):
            left, right = (_without_strays(logs.get(partition, [])) for logs in (ours, copies))
            if topic.compacted:
                left, right = _newest(left), _newest(right)
            if [each.content for each in left] != [each.content for each in right]:
                equal = next(
                    (at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one[1:] != other[1:]),
                    min(len(left), len(right)),
                )
                words = f"{len(left)} records at {born}, {len(right)} in the copy; the first {equal} are equal"
                yield Found("differs", f"{topic.name}-{partition}", words)


def _reads(history: History, group: str, topic: Topic, acks: list[Ack], unknown: set[str]) -> Iterator[Found]:
    names = {name for alias in (SOURCE, TARGET) for name in topic.places(alias).values()}
    born = {ack.value: ack.alias for ack in acks}
    where = f"{group} in {topic.name}"
    values = [
        read.value
        for read in history.reads
        if read.group == group and read.topic in names and not read.value.startswith(STRAY)
    ]
    counts = Counter(values)
    wanted = _last_of_keys(acks, topic) if topic.compacted else set(born)
    yield from _told("unread", where, [value for value in wanted if not counts[value]])
    yield from _told("read twice", where, [value for value, count in counts.items() if count > 1])
    yield from _told("read alien", where, [value for value in counts if value not in born and value not in unknown])
    orders: dict[str, list[str]] = defaultdict(list)
    for value in values:  # with renamed copies a partition of one topic comes from two logs, which have no order
        orders["" if topic.keeps_name else born.get(value, "")].append(value)
    for ordered in orders.values():
        yield from _told("read reordered", where, out_of_order(ordered))


def _last_of_keys(acks: list[Ack], topic: Topic) -> set[str]:
    last: dict[tuple[str, int], str] = {}
    for ack in acks:
        place = origin_of(ack.value), number_of(ack.value) % topic.keys
        if place not in last or number_of(last[place]) < number_of(ack.value):
            last[place] = ack.value
    return set(last.values())


def _without_strays(log: list[Kept]) -> list[Kept]:
    return [each for each in log if not each.value.startswith(STRAY)]


def _newest(log: list[Kept]) -> list[Kept]:
    """Return the records that no compaction may remove."""
    newest = {each.content[1]: each for each in log}
    return [each for each in log if newest[each.content[1]] is each]


def _told(what: str, where: str, values: list[str]) -> Iterator[Found]:
    if values:
        shown = ", ".join(sorted(values)[:_SHOWN])
        yield Found(what, where, f"{len(values)} ({shown}{', ...' if len(values) > _SHOWN else ''})")
