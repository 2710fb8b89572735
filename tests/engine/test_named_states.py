"""States with a name of their own: a cluster that is away, an open transaction, nothing to copy, a lag known in part.

Drivers were told what their pumps and clusters say; each state is followed to what people read.
"""

from __future__ import annotations

import dataclasses
import re

from test_observer import a_driver, an_observer, copying, looked_at, of_t, tell
from tests.support.snapshot_samples import snapshot

from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.look.doctor.flow_status import line
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.page.cut_over import CutOverVerdict, cut_over
from sparkmirror.look.page.sentences import Tone, headline
from sparkmirror.mirror.engine.cluster_watch import Away, ClusterWatch
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_health import is_healthy
from sparkmirror.mirror.engine.transaction_watch import HeldBack
from sparkmirror.mirror.sync.pattern_matches import Matches
from sparkmirror.snapshot.snapshot import Cause, Flow, FlowState, PartitionState, Role
from sparkmirror.snapshot.unmatched_pattern import UnmatchedPattern

SINCE_S = 1_764_000_000.0


class PlayedWatch(ClusterWatch):
    """Its cluster is away, or it is not."""

    def __init__(self, driver: FlowDriver, silence: Away | None) -> None:
        super().__init__(driver.flow.source, "played")
        self.silence = silence

    @property
    def away(self) -> Away | None:
        return self.silence


def put_away(driver: FlowDriver, *, source: bool = False, target: bool = False) -> None:
    driver.view.watches = (
        PlayedWatch(driver, Away(SINCE_S, "cluster A has not answered since then: refused") if source else None),
        PlayedWatch(driver, Away(SINCE_S, "cluster B has not answered since then: refused") if target else None),
    )


def seen(driver: FlowDriver) -> Flow:
    """The flow, as who works on it sees it."""
    (flow,) = looked_at(driver)
    return dataclasses.replace(flow, role=Role.LEADER, leader="host-1:4711", processes=2)


def rules(flow: Flow) -> set[str]:
    return {finding.rule for finding in diagnose(snapshot(flow))}


def samples(flow: Flow, name: str) -> list[str]:
    text = MirrorCollector(lambda: snapshot(flow)).text().decode()
    return [line for line in text.splitlines() if line.startswith(name)]


def assert_a_problem(flow: Flow) -> None:
    """Whoever looks is told so."""
    assert not is_healthy(flow)
    assert headline(flow, flow.at_ms).tone is Tone.BAD
    assert cut_over(flow, flow.at_ms).verdict is CutOverVerdict.NOT_YET


def test_old_figures_of_a_source_that_is_away_are_not_told() -> None:
    driver = a_driver(2)
    copying(driver, {0: (100, 100), 1: (100, 100)}, source_end=100)
    put_away(driver)
    flow = seen(driver)
    assert (flow.state, flow.lag, is_healthy(flow)) == (FlowState.CAUGHT_UP, 0, True)
    assert samples(flow, "sparkmirror_cluster_up") == [
        'sparkmirror_cluster_up{flow="A->B",side="source",cluster="A"} 1',
        'sparkmirror_cluster_up{flow="A->B",side="target",cluster="B"} 1',
    ]

    put_away(driver, source=True)
    flow = seen(driver)
    assert_a_problem(flow)
    assert (flow.state, flow.lag, flow.unknown) == (FlowState.UNREACHABLE, None, 2)
    assert flow.reason == flow.source.away
    assert all(partition.lag is partition.end is None for topic in flow.topics for partition in topic.partitions)
    assert "100.0% done" not in line(flow, 0)
    assert "lag not known" in line(flow, 0)
    assert rules(flow) >= {"source-unreachable"}
    assert samples(flow, "sparkmirror_lag_records") == []
    assert samples(flow, "sparkmirror_cluster_up") == [
        'sparkmirror_cluster_up{flow="A->B",side="source",cluster="A"} 0',
        'sparkmirror_cluster_up{flow="A->B",side="target",cluster="B"} 1',
    ]
    said = headline(flow, flow.at_ms)
    assert re.fullmatch(r"Source A can't be reached since .* UTC; nothing is copied.*", said.what)
    assert said.then.endswith("It continues by itself once a broker answers (refused).")

    put_away(driver)
    assert seen(driver).state is FlowState.CAUGHT_UP


def test_a_target_that_is_away() -> None:
    driver = a_driver(1)
    copying(driver, {0: (90, 100)})
    put_away(driver, target=True)
    flow = seen(driver)
    assert_a_problem(flow)
    assert (flow.state, flow.lag) == (FlowState.UNREACHABLE, 10), "the source has told its end"
    assert rules(flow) >= {"target-unreachable"}


HELD_BACK = HeldBack(
    "a transaction of producer 4000, which is open from source offset 3 on", "kafka-transactions.sh abort"
)


def test_a_transaction_counts_as_lag_and_after_a_while_holds_the_flow_up() -> None:
    driver = a_driver(2)
    driver.view.take_ends({("t", 0): 9, ("t", 1): 5}, {}, {("t", 0): 3})
    tell(driver, of_t(0, 3, source_end=3), of_t(1, 5))
    flow = seen(driver)
    first, second = flow.topics[0].partitions
    assert (flow.state, flow.lag) == (FlowState.CAUGHT_UP, 6), "all that may be read is copied"
    assert (first.state, first.lag, first.held_back, second.held_back) == (PartitionState.RUNNING, 6, 6, 0)
    assert is_healthy(flow)
    assert headline(flow, flow.at_ms).what.startswith("Caught up")
    assert cut_over(flow, flow.at_ms).verdict is CutOverVerdict.NOT_YET
    assert "100.0% done" not in line(flow, 0)
    assert rules(flow) == set()

    driver.view.held_back = {("t", 0): HELD_BACK}
    flow = seen(driver)
    first, _ = flow.topics[0].partitions
    assert_a_problem(flow)
    assert (flow.state, flow.lag) == (FlowState.HELD_UP, 6)
    assert (first.state, first.cause) == (PartitionState.WAITING, Cause.OPEN_TRANSACTION)
    assert first.reason == f"6 offsets wait for the end of {HELD_BACK.words}"
    assert "to end it: kafka-transactions.sh abort" in line(flow, 0)
    assert rules(flow) == {"open-transaction"}
    (finding,) = diagnose(snapshot(flow))
    assert finding.action.endswith("`kafka-transactions.sh abort`")
    assert samples(flow, "sparkmirror_held_back_records") == ['sparkmirror_held_back_records{flow="A->B"} 6']

    tell(driver, of_t(1, 2))  # another partition is copied meanwhile
    flow = seen(driver)
    assert flow.state is FlowState.COPYING
    assert_a_problem(flow)


def test_a_flow_that_is_held_up_has_no_time_left() -> None:
    """Records on their way are copied, and what is held up stays so."""
    driver = a_driver(2)
    copying(driver, {0: (100, 100), 1: (100, 100)})
    driver.view.take_ends({("t", 0): 110, ("t", 1): 105}, {})
    look = an_observer(driver)
    look()
    for moment, position in enumerate((100, 105)):
        parked = of_t(0, 100, state="parked", cause=Cause.TOO_LARGE, reason="too large")
        tell(driver, parked, of_t(1, position), at_ms=moment * 1000, records=moment * 5)
        look()
    driver.view.take_ends({("t", 0): 110, ("t", 1): 107}, {})
    flow = look()
    assert flow.records_per_s > 0
    assert (flow.state, flow.lag, flow.eta_s) == (FlowState.HELD_UP, 12, None)


def test_what_can_be_read_before_a_transaction_is_lag_as_any_other() -> None:
    driver = a_driver(1)
    driver.view.take_ends({("t", 0): 9}, {}, {("t", 0): 7})
    tell(driver, of_t(0, 3))
    flow = seen(driver)
    (partition,) = flow.topics[0].partitions
    assert (flow.state, partition.lag, partition.held_back) == (FlowState.COPYING, 6, 2)


def test_a_parked_partition_stays_parked() -> None:
    driver = a_driver(1)
    driver.view.take_ends({("t", 0): 9}, {}, {("t", 0): 3})
    driver.view.held_back = {("t", 0): HELD_BACK}
    tell(driver, of_t(0, 2, state="parked", cause=Cause.TOO_LARGE, reason="too large"))
    (partition,) = seen(driver).topics[0].partitions
    assert (partition.state, partition.cause, partition.reason) == (PartitionState.PARKED, Cause.TOO_LARGE, "too large")


def test_one_partition_that_is_not_known_does_not_hide_the_others() -> None:
    driver = a_driver(3)
    driver.view.take_ends({("t", number): 100 for number in range(3)}, {})
    quota = "target broker 1 throttles sparkmirror (a quota there)"
    tell(driver, of_t(0, 90), of_t(1, 80), of_t(2, -1, state="waiting", cause=Cause.THROTTLED, reason=quota))
    flow = seen(driver)
    assert (flow.state, flow.lag, flow.unknown) == (FlowState.FINDING_OUT, 30, 1)
    assert flow.lag_s is not None
    assert flow.why_unknown == f"t-2: {quota}"
    words = headline(flow, flow.at_ms).what
    assert "30 records behind" in words
    assert f"the lag of 1 partition isn't known (t-2: {quota})" in words
    assert "lag 30 (0 s), 1 partition not known" in line(flow, 0)
    assert f"finding out (t-2: {quota})" in line(flow, 0)
    assert "done" not in line(flow, 0), "the share that is copied is not known"
    assert samples(flow, "sparkmirror_lag_records") == ['sparkmirror_lag_records{flow="A->B"} 30']
    assert samples(flow, "sparkmirror_partitions_unknown") == ['sparkmirror_partitions_unknown{flow="A->B"} 1']
    assert cut_over(dataclasses.replace(flow, lag=0), flow.at_ms).verdict is CutOverVerdict.UNKNOWN


def test_a_flow_of_heartbeats_alone_has_nothing_to_copy() -> None:
    driver = a_driver(1)
    copying(driver, {0: (100, 100)})
    slip = UnmatchedPattern("topics", "ordrs", nearest=("orders",))
    driver.topics.matches = Matches("no topic of A matches topics = ordrs (did you mean orders?)", (slip,))
    flow = seen(driver)
    assert_a_problem(flow)
    assert (flow.state, flow.reason) == (FlowState.NOTHING, driver.topics.matches.nothing)
    assert headline(flow, flow.at_ms).what.startswith("Nothing to copy")
    assert rules(flow) == {"nothing-to-copy"}


def test_one_pattern_of_several_that_matches_nothing() -> None:
    """A name that is like it is a remark; a spelling that can hardly be meant is a fault."""
    driver = a_driver(1)
    copying(driver, {0: (100, 100)})
    driver.topics.matches = Matches(unmatched=(UnmatchedPattern("topics", "ordrs", nearest=("orders",)),))
    flow = seen(driver)
    assert (flow.state, is_healthy(flow), rules(flow)) == (FlowState.CAUGHT_UP, True, {"pattern-unmatched"})
    assert "nothing matches topics = ordrs (did you mean orders?)" in line(flow, 0)
    assert headline(flow, flow.at_ms).tone is Tone.WARNING
    assert cut_over(flow, flow.at_ms).verdict is CutOverVerdict.NOT_YET
    driver.topics.matches = Matches(unmatched=(UnmatchedPattern("topics", "a;b", fault="`;` separates no patterns"),))
    assert not is_healthy(seen(driver))
    driver.topics.matches = Matches(unmatched=(UnmatchedPattern("topics", "later"),))
    flow = seen(driver)
    assert (is_healthy(flow), headline(flow, flow.at_ms).tone) == (True, Tone.GOOD), "it may be for a topic to come"
