"""Generator of `docs/lint.md` from the rules.

`python -m sparkmirror.lint.page > docs/lint.md` writes the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sparkmirror.lint.check import CONNECTED_RULES, RULES
from sparkmirror.lint.findings import LintRule

_HEAD = """\
# Lint

```
sparkmirror lint mm2.properties
sparkmirror lint mirror.yaml --secrets /mnt/secrets --connect
sparkmirror lint source.json checkpoint.json heartbeat.json worker.properties -o json
```

`sparkmirror lint` looks for the mistakes that users of MirrorMaker 2 report, in files of all three formats. For each
mistake it prints the line, the consequences and the remedy. Exit code 0: no mistake (there may be `info`), 1: a
mistake, 2: the file can't be read. In a pipe, or with `-o json`, the output has no colours.

With `--connect` lint asks both clusters of each flow, too, and leaves them as they are: it asks for permissions, and
creates topics with `validate_only`. Brokers don't tell the rights on topics that don't exist yet; ACLs do, if
sparkmirror's principal may read them. The clock of a cluster is its active controller's, as DescribeQuorum tells it.

**Lint makes one topic of sparkmirror's own at the target, and deletes it within a second**: on this topic the brokers
must show that they check appended batches as Apache Kafka does, because exactly once rests on that check
([design.md](design.md#exactly-once-the-leader-as-compare-and-append)). The topic's name is
`mm2-sparkmirror-append-check.<time>-<random>.internal`. If sparkmirror's principal lacks the right to make or to delete
it, no topic is made, and `info` says that nothing was proven. If a killed process leaves such a topic, the first check
at least five minutes later deletes it.
"""


def page() -> str:
    """Return the whole page."""
    parts = [
        _HEAD,
        "## In the files\n",
        *_rows(RULES),
        "\n## At the clusters, with `--connect`\n",
        *_rows(CONNECTED_RULES),
    ]
    return (
        "\n".join([*parts, "", "This page is made from the code: `python -m sparkmirror.lint.page > docs/lint.md`."])
        + "\n"
    )


def _rows(rules: Iterable[LintRule[Any]]) -> Iterator[str]:
    yield "| rule | severity | what is wrong | what it causes | what to do |"
    yield "|---|---|---|---|---|"
    for rule in rules:
        cells = (f"`{rule.name}`", rule.severity.value, rule.what, rule.effect, rule.fix)
        yield "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
