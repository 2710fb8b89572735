"""`sparkmirror migration rehearse -o json`: its rows."""

from __future__ import annotations

from sparkmirror.cli.rehearsal_lines import rehearsal_rows
from sparkmirror.migrate.rehearsal import PartitionRehearsal, Rehearsal


def test_groups_without_a_result_have_the_same_keys() -> None:
    part = PartitionRehearsal(group="a", topic="orders", partition=0, committed=7, copy="orders", position=5)
    whole, refused, not_copied = rehearsal_rows(
        Rehearsal(partitions=(part,), refused={"b": "denied"}, not_copied={"c": ("stock", "bills")})
    )
    for row, group, reason in ((refused, "b", "denied"), (not_copied, "c", "not copied: stock, bills")):
        told = {"group": group, "result": "unknown", "reason": reason}
        assert row == dict.fromkeys(whole) | told
