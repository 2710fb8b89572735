"""`docs/lint.md`, made of the rules: `python -m sparkmirror.lint.page > docs/lint.md` writes it anew."""

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

looks for the mistakes that users of MirrorMaker 2 report, in files of all three formats: each with its line, what
it would cause, and what to do. Exit code 0: nothing is wrong (there may be `info`), 1: something is, 2: the file
can't be read. In a pipe, or with `-o json`, nothing is coloured.

With `--connect` both clusters of each flow are asked, too. Nothing of theirs is changed: permissions are asked for,
and topics are created with `validate_only`. What may be done with topics that are not there yet brokers don't
tell: ACLs do, where we may read them. A cluster's clock is the active controller's, as DescribeQuorum tells it.

**One topic of our own is made at the target, and deleted again within a second**: on it the brokers must show that
they check what is appended as Apache Kafka does, for all exactness rests on that
([design.md](design.md#exactly-once-the-leader-as-compare-and-append)). Its name is
`mm2-sparkmirror-append-check.<time>-<random>.internal`. Where we may not make it, or not delete it, none is made, and
`info` says that nothing was proven. What a killed process left behind is deleted by the first that tries it at least
five minutes later.
"""


def page() -> str:
    """The whole page."""
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
