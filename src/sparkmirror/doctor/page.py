"""The part of `docs/doctor.md` made of the rules."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.diagnosis import RULES
from sparkmirror.doctor.rule import Rule

_HEAD = """\
# Doctor

```
sparkmirror doctor mm2.properties
sparkmirror doctor mm2.properties --wait 70
sparkmirror doctor mm2.properties -o json
```

tells what is wrong with a running mirror, why, and what to do: the worst first, and what explains other findings
before them, even where it is less bad by itself (a quota before the flow that does not move for it). It reads what the
mirror publishes at the flow's target every 5 s, twice, so it works from any machine that can read the target.

`--wait` is the time between both looks, 6 s unless said otherwise. Some rules compare with a sample of a minute ago
(`no-progress`, `partitions-stuck`, `lag-growing`, `heartbeats-missing`): for these say `--wait 70`. The page of a
running mirror looks all the time, and knows Spark's slots besides.

Exit codes: 0 nothing but notices, 1 something critical or a warning, 2 the file is wrong, 3 the target can't be
reached, or nothing was published for longer than `--stale` seconds.

A finding is `critical` (data is lost, or will be soon, or nothing is copied), a `warning` (it gets worse, or a promise
is broken), or a `notice` (worth knowing).

## Rules
"""


def page() -> str:
    """Return the page's head and the rules."""
    return "\n".join([_HEAD, *(line for rule in RULES for line in _section(rule))])


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.name}"
    yield ""
    yield f"**{rule.title}** ({rule.severity})."
    yield ""
    yield f"- When: {rule.when}"
    yield f"- Cause: {rule.cause}"
    yield f"- What to do: {rule.action}"
    if rule.explains:
        yield f"- Comes before: {', '.join(rule.explains)}."
    yield ""
