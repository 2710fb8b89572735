"""A snapshot in which everything that metrics tell is there."""

from __future__ import annotations

from snapshot_samples import NOW_MS, flow, group, partition, snapshot, topic

from sparkmirror.engine.snapshot import ClusterFigures, Duty, LossCount, PartitionState
from sparkmirror.position.cause import Cause

RICH = snapshot(
    flow(
        source=ClusterFigures("A", certificate_ends_ms=NOW_MS),
        topics=(topic("orders", partition(lag=3), partition(1, state=PartitionState.PARKED, cause=Cause.TOO_LARGE)),),
        groups=(group(checkpoint_ms=4.0),),
        duties=(Duty("checkpoints", 60.0, NOW_MS, 0.1), Duty("Connect's offsets", 60.0, NOW_MS, 0.1)),
        ledger=(LossCount("expired", 1, 7, NOW_MS, "w"), LossCount("fenced", 1, 1, NOW_MS, "w", is_loss=False)),
        epochs={"load": 1},
        retention_s=60.0,
        objective_s=5.0,
        eta_s=9.0,
    )
)
