"""Reports of pumps that come while their round ends."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

from tests.support.receipts import receipt

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.report_watch import ReportWatch
from sparkmirror.pump.messages.orders import FlowEnd, FlowReport, Receipt

KEY = PartitionKey("A->B", "t", 0)


class SlowView(FlowView):
    """A view that takes a report only when the test lets it."""

    begun = threading.Event()
    go_on = threading.Event()

    def take_report(self, flow: str, report: FlowReport) -> None:
        self.begun.set()
        self.go_on.wait(10)
        super().take_report(flow, report)


def after(records: int) -> Receipt:
    return receipt(source_topic="t", records=records, bytes=records * 10, upstream=records)


def test_a_report_in_the_midst_of_a_rounds_end_does_not_hide_its_receipts() -> None:
    view = SlowView()
    control: Any = SimpleNamespace(done_topics=SimpleNamespace(reach=lambda _: None))
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("nowhere:9092",)) for alias in "AB")
    watch = ReportWatch(FlowConfig(source=source, target=target), "i", view, control, lambda: True)
    late = FlowReport(epoch=1, task=0, pump="1/0", incarnation="i", at_ms=0, receipts=(after(200),))
    end = FlowEnd(flow="A->B", pump="1/0", receipts=(after(300),))
    threads = [
        threading.Thread(target=watch._note, args=(late,)),  # noqa: SLF001 - as its own thread does
        threading.Thread(target=watch.take_receipts, args=(1, {KEY: after(300)}, [end])),
    ]
    threads[0].start()
    assert view.begun.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    view.go_on.set()
    for thread in threads:
        thread.join(10)
    newest = view.partitions[KEY]
    assert cast("Receipt", newest.receipt).upstream == 300
    assert newest.counts.total == view.counts.total == (300, 3000)
    watch.close()
