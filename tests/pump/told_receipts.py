"""The driver's knowledge of a pump's receipts, put together from the reported changes."""

from __future__ import annotations

from collections import Counter

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.messages.orders import Receipt


class ToldReceipts:
    """Follower of one pump's news; a partition must not change in silence."""

    def __init__(self, pump: FlowPump) -> None:
        self._pump = pump
        self._told: dict[TopicPartition, Receipt] = {}
        self.reported: Counter[TopicPartition] = Counter()

    def receipts(self) -> list[Receipt]:
        """Take the next news, and return all receipts; they are those that a look at all partitions gives."""
        news = self._pump.news(all_again=False)
        for receipt in news.changed:
            self._told[receipt.source_topic, receipt.partition] = receipt
            self.reported[receipt.source_topic, receipt.partition] += 1
        whole = self._pump.receipts()
        assert [self._told[receipt.source_topic, receipt.partition] for receipt in whole] == whole
        assert news.lag == sum(max(one.source_end - one.upstream, 0) for one in whole if one.upstream >= 0)
        assert news.waiting == min((one.reason for one in whole if one.reason and one.state != "done"), default="")
        assert news.in_flight == sum(copy.waiting_records for copy in self._pump.copies)
        return whole
