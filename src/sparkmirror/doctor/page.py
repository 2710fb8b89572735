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

`sparkmirror doctor` tells what is wrong with a running mirror, why, and what to do. The worst finding comes first. A
finding that explains others comes before them, even if it is less bad by itself (a quota comes before the flow that the
quota stops). Doctor reads twice the status that the mirror publishes at the flow's target every 5 s. So doctor works
from any machine that can read the target.

`--wait` is the time between the two looks, 6 s by default. Some rules compare with a sample of a minute ago
(`no-progress`, `partitions-stuck`, `lag-growing`, `heartbeats-missing`): for these rules write `--wait 70`. The page of
a running mirror looks all the time, and also knows Spark's slots.

Exit codes: 0 no finding but notices, 1 a critical finding or a warning, 2 the file is wrong, 3 the target can't be
reached, or the mirror has published nothing for longer than `--stale` seconds.

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
