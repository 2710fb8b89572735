"""A snapshot in which everything that metrics tell is there."""

from __future__ import annotations

from tests.support.snapshot_samples import NOW_MS, flow, group, partition, snapshot, topic

from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.exact.position.cause import Cause
from sparkmirror.snapshot.snapshot import ClusterFigures, Duty, LossCount, PartitionState

RICH = snapshot(
    flow(
        source=ClusterFigures(alias="A", certificate_ends_ms=NOW_MS),
        topics=(
            topic(
                "orders",
                partition(lag=3),
                partition(1, state=PartitionState.PARKED, cause=Cause.TOO_LARGE),
                partition(2, state=PartitionState.WAITING, cause=Cause.OPEN_TRANSACTION, lag=4, held_back=4),
            ),
        ),
        groups=(group(checkpoint_ms=4.0),),
        duties=(
            Duty(duty="checkpoints", interval_s=60.0, succeeded_ms=NOW_MS, took_s=0.1, written=12),
            Duty(duty="heartbeats", interval_s=1.0, succeeded_ms=NOW_MS, took_s=0.1, written=60),
            Duty(duty="Connect's offsets", interval_s=60.0, succeeded_ms=NOW_MS, took_s=0.1),
        ),
        losses=(
            LossCount(kind="expired", entries=1, offsets=7, newest_ms=NOW_MS, words="w"),
            LossCount(
                kind="recreated", entries=1, offsets=0, newest_ms=NOW_MS, words="w", outcome=LossOutcome.MAY_BE_LOST
            ),
            LossCount(kind="fenced", entries=1, offsets=1, newest_ms=NOW_MS, words="w", outcome=LossOutcome.EXPECTED),
        ),
        epochs={"load": 1},
        retention_s=60.0,
        objective_s=5.0,
        eta_s=9.0,
    )
)
