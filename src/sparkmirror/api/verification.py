"""A verification with its verdict, its figures and its differences."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkmirror.api.configured import File, Properties, Route, configured
from sparkmirror.api.html import table
from sparkmirror.api.spark import session_for
from sparkmirror.config import MirrorConfig
from sparkmirror.frames import DIFFERENCES, Options, PartitionResult, Verdict, run_verification
from sparkmirror.frames.report import Verification as Findings

PARTITIONS = (
    "flow string, topic string, target_topic string, partition int, records long, bytes long, differences long, "
    "compacted long, not_copied_yet long, because string, expired long, deleted long, unjudged long"
)
_SHOWN = ("flow", "topic", "partition", "records", "differences", "not_copied_yet", "deleted")


class Verification:
    """Outcome of a verification: true if the target is equal."""

    def __init__(self, spark: SparkSession, findings: Findings) -> None:
        self._spark = spark
        self.findings = findings

    @property
    def verdict(self) -> Verdict:
        return self.findings.verdict

    @property
    def records(self) -> int:
        """Number of records that are equal on both sides, in order."""
        return sum(result.records for result in self.findings.partitions)

    @property
    def partitions(self) -> DataFrame:
        """Figures of each partition (`PARTITIONS`)."""
        return self._spark.createDataFrame(list(map(_row, self.findings.partitions)), PARTITIONS)

    @property
    def differences(self) -> DataFrame:
        """Each listed difference (`frames.DIFFERENCES`); no rows for equal copies."""
        return self._spark.createDataFrame([tuple(each) for each in self.findings.differences], DIFFERENCES)

    def __bool__(self) -> bool:
        return self.verdict is Verdict.EQUAL

    def __repr__(self) -> str:
        left = sum(self.findings.behind.values())
        differences: Counter[str] = Counter()
        for result in self.findings.partitions:
            differences.update(result.differences)
        parts = [f"{self.verdict}: {self.records:,} records are equal"]
        parts += [f"{count:,} {kind}" for kind, count in sorted(differences.items()) if count]
        parts += [f"{left:,} not copied yet"] if left else []
        parts += [f"{self.findings.deleted:,} deleted at the target"] if self.findings.deleted else []
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        names = [column.split()[0] for column in PARTITIONS.split(", ")]
        rows = [dict(zip(names, _row(result), strict=True)) for result in self.findings.partitions]
        return table(repr(self), _SHOWN, ([row[name] for name in _SHOWN] for row in rows))


def verify_flows(spark: SparkSession, config: MirrorConfig, options: Options) -> Verification:
    """Compare the flows' clusters.

    Raises `ConfigError`, `ClusterUnreachable` and `SetupError`.
    """
    return Verification(spark, run_verification(spark, config, options))


def verify(
    config: File | Properties,
    *,
    spark: SparkSession | None = None,
    properties: Properties = MappingProxyType({}),
    **options: Any,
) -> Verification:
    """Compare sources and targets record by record, as `sparkmirror verify` does.

    Further keywords are the fields of `frames.Options`, such as `topics` and `sample`. Raises `ConfigError`,
    `ClusterUnreachable`, and `SetupError` if Spark fails.
    """
    read = configured(config, Route(), properties)
    return verify_flows(session_for(read, spark), read, Options(**options))


def _row(result: PartitionResult) -> tuple[object, ...]:
    return (
        result.flow,
        result.topic,
        result.target_topic,
        result.partition,
        result.records,
        result.bytes,
        sum(result.differences.values()),
        result.compacted,
        result.not_copied_yet,
        result.because,
        result.expired,
        result.deleted,
        result.unjudged,
    )
