"""Write docs/versions.md from what the matrix and the upgrades have recorded: `python tests/versions/table.py`.

A pair that was not tried has an empty row. What is weaker with old versions stands here, as nothing can record it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from outcomes import CELLS, FAILS, REFUSED, WORKS, Pair, recorded
from pairs import NEWEST, UPGRADES, WORKING
from pairs import REFUSED as REFUSED_PAIRS

PAGE = Path(__file__).parents[2] / "docs" / "versions.md"

_SIGNS = {WORKS: "yes", REFUSED: "refused", FAILS: "**fails**"}

INTRODUCTION = """\
# Versions of Kafka

Recorded on {today}, at commit {commit}.

`tests/versions` tries sparkmirror with real brokers of each version; `python tests/versions/table.py` makes this page
of the results. Versions up to 3.9 have ZooKeeper unless the table says KRaft.
*IBP* is `inter.broker.protocol.version`, if it is older than the brokers: the first half of an upgrade.
"""

COLUMNS = """\
The columns mean:

- **lint --connect**: lint finds no fault of the clusters.
- **run --once**: topics of all codecs, keyed, compacted and really cleaned, transactional, and of message formats
  v0 and v1 if brokers write them, arrive record for record: key, value, headers, timestamp, order, number of
  each partition.
- **two kills**: the same, under load, of a mirror whose processes are all killed twice after they have begun to copy.
- **groups**: a stopped group continues, in every topic, at exactly the record that it would have read next.
- **translate**: `offsets translate` is as exact, inside compacted logs too.
- **verify**, **losses**: exit code 0; an empty ledger.
- **next to MirrorMaker 2**: the real MirrorMaker 2 4.3.1 copies the same source into the same target; both copies are
  equal. Empty if it was not tried.
"""

UPGRADING = """\
## Upgrades in place

One mirror runs all the time, and a producer writes to the topic. A phase is done when records written after it have
arrived; at the end each record is there once, in order. Kafka 4 has no ZooKeeper: a cluster that has one is migrated
to KRaft on 3.9 first, by Kafka's own procedure, or the 4.x target is a new cluster to sparkmirror.

A broker of 2.8 among newer ones can leave a replica out of its partitions' ISR for good, once a newer controller has
refused it (its log: "Failed to enqueue ISR change state"). Mirrors continue; the partition lacks a replica until that
broker is restarted.
"""

REFUSALS = """\
## What is refused

`run` refuses these pairs before it creates anything at the target, with exit code 3; `lint --connect` has the same
words, after `a broker is too old`.
"""

WEAKER = """\
## What is weaker with old clusters

`run` names the first two weaknesses once at its start, and `lint --connect` reports them as `info`.

- **A source below 2.1**: its brokers check no leader epochs (KIP-320), and tell the end of an epoch to brokers only, if
  there is an authorizer. An unclean leader election, which loses acknowledged records, then shows only
  if the source's log ends below the copied offset: as `truncated`. If the log has grown past that offset again
  meanwhile, the election goes unnoticed.
- **A source without topic ids** (below 2.8, or with an older `inter.broker.protocol.version`): a topic that is
  deleted and created again looks like the old one; if the new log is shorter it shows as `truncated`.
  Topics that get their ids by an upgrade stay the same topics, and the next claims have the ids.
- **Message formats v0 and v1** become magic 2 at the target. Format v0 has no timestamps: they are -1 at the
  target, and a consumer of the source sees -1, too.
- **A target below 3.4** forgets an idle producer after `transactional.id.expiration.ms`, not
  `producer.id.expiration.ms`: the former setting decides how much may be in flight
  ([design.md](design.md#exactly-once-the-leader-as-compare-and-append)).
- **The clock** of a cluster with ZooKeeper can't be read, so lint can't compare it.
"""


def page() -> Iterator[str]:
    """The whole page, in parts."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, cwd=PAGE.parent, capture_output=True, text=True, check=True).stdout.strip()
    yield INTRODUCTION.format(today=date.today(), commit=commit)
    yield COLUMNS
    yield "\n".join(_table(WORKING, CELLS))
    yield UPGRADING
    yield "\n".join(_upgrades())
    yield REFUSALS
    yield "\n".join(_refusals(REFUSED_PAIRS))
    failing = list(_failures([*(pair.title for pair in (*WORKING, *REFUSED_PAIRS)), *UPGRADES]))
    if failing:
        yield "## What fails\n"
        yield "\n".join(failing)
    yield WEAKER


def _table(pairs: Iterable[Pair], cells: Iterable[str]) -> Iterator[str]:
    """A row for all pairs that have one side and all outcomes in common."""
    names = list(cells)
    yield f"| source | target | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    rows: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        outcomes = recorded(pair.title)
        signs = [_SIGNS[outcomes[name]["outcome"]] if name in outcomes else "" for name in names]
        side = ("into", pair.target) if pair.target == NEWEST else ("from", pair.source)
        rows.setdefault((*side, *signs), []).append(pair)
    for (_, _, *signs), alike in rows.items():
        sources, targets = (dict.fromkeys(side) for side in zip(*((p.source, p.target) for p in alike), strict=True))
        yield f"| {', '.join(sources)} | {', '.join(targets)} | {' | '.join(signs)} |"
    yield ""


def _upgrades() -> Iterator[str]:
    for title in UPGRADES:
        yield f"**{title[0].upper()}{title[1:]}**\n"
        cells = recorded(title)
        if not cells:
            yield "Not tried.\n"
            continue
        fails = any(cell["outcome"] != WORKS for cell in cells.values())
        yield (
            "| phase | outcome | it took, records so far |\n|---|---|---|"
            if fails
            else ("| phase, each done | it took, records so far |\n|---|---|")
        )
        rows: dict[tuple[str, str], list[str]] = {}
        for name, cell in cells.items():
            says = cell["says"].removesuffix(" so far").removesuffix(" records") if cell["outcome"] == WORKS else ""
            rows.setdefault((_SIGNS[cell["outcome"]], says), []).append(name)
        for (sign, says), names in rows.items():
            yield f"| {'; '.join(names)} | {f'{sign} | ' if fails else ''}{says} |"
        yield ""


def _refusals(pairs: Iterable[Pair]) -> Iterator[str]:
    """A row for each pair: whether each verb refuses it, and the words that they have in common."""
    yield "| source and target | words |\n|---|---|"
    for pair in pairs:
        outcomes = recorded(pair.title)
        signs = ", ".join(f"`{name}`: {_SIGNS[cell['outcome']]}" for name, cell in outcomes.items())
        says = {cell["says"].partition(": ")[2] for cell in outcomes.values() if cell["outcome"] == REFUSED}
        every = all(cell["outcome"] == REFUSED for cell in outcomes.values())
        said = "" if every and outcomes else f"{signs or 'not tried'}: "
        yield f"| {pair.title} | {said}{'; '.join(says)} |"
    yield ""


def _failures(titles: Iterable[str]) -> Iterator[str]:
    for title in titles:
        for name, cell in recorded(title).items():
            if cell["outcome"] == FAILS:
                yield f"{title}, {name}:\n\n```\n{cell['says']}\n```\n"


def main() -> int:
    """Write the page; return 1 if something on it fails."""
    text = "\n".join(page())
    PAGE.write_text(text.rstrip() + "\n")
    print(PAGE)
    return int("## What fails" in text)


if __name__ == "__main__":
    sys.exit(main())
