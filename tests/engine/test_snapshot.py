"""The snapshot as it travels."""

from __future__ import annotations

import dataclasses

import pytest
from tests.support.snapshot_samples import flow, group, partition, snapshot, topic

from sparkmirror.snapshot.snapshot import LATENCY_BOUNDS_S, Cause, Histogram, PartitionState, Snapshot


def test_it_comes_back_as_it_went() -> None:
    parked = partition(1, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, lag=None, lag_s=None, reason="too large")
    sent = snapshot(flow(topics=(topic("orders", partition(), parked),), groups=(group(), group("other"))))
    assert Snapshot.from_json(sent.to_json()) == sent
    assert [one.partition for _, one in sent.flows[0].parked] == [1]


def test_text_that_is_no_snapshot_is_refused() -> None:
    with pytest.raises(ValueError, match="process"):
        Snapshot.from_json("{}")


def test_what_a_group_reads_again_is_known_only_with_all_its_partitions() -> None:
    one = group()
    assert one.reread == 5
    blind = dataclasses.replace(one.partitions[0], reread=None)
    assert dataclasses.replace(one, partitions=(*one.partitions, blind)).reread is None


def test_quantiles_are_those_of_the_buckets() -> None:
    counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
    counts[2], counts[-1] = 99, 1
    seen = Histogram(tuple(counts), 3.0)
    assert (seen.total, seen.quantile(0.5), seen.quantile(0.999)) == (100, LATENCY_BOUNDS_S[2], float("inf"))
    assert Histogram().quantile(0.5) is None
