"""What a pump reports fits into records, however many partitions it has."""

from __future__ import annotations

import pytest
from tests.support.receipts import receipt

from sparkmirror.pump.messages.figures import PartitionFigures
from sparkmirror.pump.messages.orders import FlowReport, Receipt
from sparkmirror.pump.pump import RECEIPTS_AT_ONCE, with_receipts

LARGEST_RECORD = 1_048_588
"""Kafka's default of `max.message.bytes`."""


def large(number: int) -> Receipt:
    return receipt(number, source_topic="t" * 200, state="parked", reason="r" * 300, target_topic_id="0" * 32)


@pytest.mark.parametrize("count", [0, 1, RECEIPTS_AT_ONCE, 3 * RECEIPTS_AT_ONCE + 1])
def test_each_receipt_comes_once_in_reports_that_a_broker_takes(count: int) -> None:
    report = FlowReport(epoch=1, task=0, pump="p", incarnation="i", at_ms=5, records=7)
    sent = list(with_receipts(report, [large(number) for number in range(count)]))
    assert sent
    assert [one.partition for some in sent for one in some.receipts] == list(range(count))
    assert {some.records for some in sent} == {7}
    assert max(len(some.model_dump_json()) for some in sent) < LARGEST_RECORD / 2


def test_figures_come_with_the_receipts_of_their_partitions() -> None:
    """A partition that was released has a receipt, and no figures."""
    report = FlowReport(epoch=1, task=0, pump="p", incarnation="i", at_ms=5)
    receipts = [large(number) for number in range(RECEIPTS_AT_ONCE + 50)]
    figures = [PartitionFigures(source_topic=one.source_topic, partition=one.partition) for one in receipts[1:]]
    for part in with_receipts(report, receipts, figures):
        assert {one.partition for one in part.figures} == {one.partition for one in part.receipts} - {0}
