"""Generator of `docs/lint.md` from the rules.

`python -m tools.lint_page > docs/lint.md` writes the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from sparkmirror.lint.check import CONNECTED_RULES, RULES
from sparkmirror.lint.findings import LintRule, LintSeverity

_BY_REASON = "as the reason says"
"""Remedy of many rules, which the page says once."""

_HEAD = """\
# Lint

```
sparkmirror lint mm2.properties
sparkmirror lint mirror.yaml --secrets /mnt/secrets --connect
sparkmirror lint source.json checkpoint.json heartbeat.json worker.properties -o json
```

`sparkmirror lint` looks for the mistakes that users of MirrorMaker 2 report, in files of all three formats, and prints
the line, the effect and the remedy of each ([exit codes](cli.md#exit-codes)). Where the tables have no remedy the
reason has it.

`--connect` also asks both clusters of each flow, and changes nothing: it creates topics with `validate_only`. Brokers
don't report rights on topics that don't exist yet; ACLs do, if sparkmirror's principal may read them. The clock of a
cluster is its active controller's, as DescribeQuorum reports it.

**Lint makes one topic of its own at the target, and deletes it within a second**, for [the append
check](design.md#the-proof-of-the-append-check): `mm2-sparkmirror-append-check.<time>-<random>.internal`. Without the
right to make or to delete it no topic is made, and `info` says that nothing was proven. If a killed process leaves one,
the first check at least five minutes later deletes it.
"""


def page() -> str:
    parts = [
        _HEAD,
        "## In the files\n",
        *_rows(RULES),
        "## At the clusters, with `--connect`\n",
        *_rows(CONNECTED_RULES, told=RULES),
    ]
    return "\n".join([*parts, "This page is made from the code: `python -m tools.lint_page > docs/lint.md`."]) + "\n"


def _rows(rules: Iterable[LintRule[Any]], told: Iterable[LintRule[Any]] = ()) -> Iterator[str]:
    """A table for each severity, the worst first."""
    first = {(rule.what, rule.fix): rule.name for rule in told}
    ranked = sorted(rules, key=lambda rule: list(LintSeverity).index(rule.severity))
    for severity, alike in groupby(ranked, lambda rule: rule.severity):
        yield f"| {severity.value} | what is wrong | what to do |"
        yield "|---|---|---|"
        for rule in alike:
            same = first.get((rule.what, rule.fix))
            fix = "" if rule.fix == _BY_REASON else rule.fix
            yield f"| `{rule.name}` | {rule.what} | {f'as for `{same}`' if same else fix} |"
        yield ""


if __name__ == "__main__":
    print(page(), end="")
