"""A flow copied by one pump in this process, without Spark: what there is now, once."""

from __future__ import annotations

from sparkmirror.config import FlowConfig
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.pump.messages.orders import PumpOrder, Receipt
from sparkmirror.pump.pump import pump


def begun(driver: FlowDriver, incarnation: str, seconds: float) -> PumpOrder:
    """Have an open driver say that its flow runs; returns the order for one pump of all partitions."""
    driver.start()
    driver.become_active()
    driver.sync_topics()
    driver.control.say(1, "running")
    order = driver.orders.order(driver.partitions())
    return PumpOrder(epoch=1, task=0, incarnation=incarnation, seconds=seconds, flows=(order,))


def copy_once(flow: FlowConfig, incarnation: str, seconds: float) -> list[Receipt]:
    """Copy everything that is at the source, in so much time at most; returns what became of each partition.

    The driver takes the last receipts and says that the round has ended, as a mirror's does: else its duties may end
    without the newest progress, and the flow's next pump waits for this one (R5).
    """
    driver = FlowDriver(flow, incarnation, use_lease=False, once=True)
    driver.open()
    try:
        (end,) = pump(begun(driver, incarnation, seconds))
        last = {PartitionKey(told.flow, told.source_topic, told.partition): told for told in end.receipts}
        driver.reports.take_receipts(1, last, [end])
        if end.in_order:
            driver.control.say(1, "ended")
        return [*end.receipts]
    finally:
        driver.close(60.0)
