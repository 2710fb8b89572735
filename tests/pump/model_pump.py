"""A pump's partition over the model of a source and a target: what is on its way takes a while, or is lost."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from model_broker import FRESH_AFTER_MS, FRESH_MS, NOT_LEADER, ROUTE, Source, TargetLog, refused

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.route import PartitionReading, Refusal
from sparkmirror.kafka.wire.batches import HEADER_SIZE
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.pump.batch import PendingClaim
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.quiet import GRACE_S, LATE_S
from sparkmirror.pump.ready import Question, Ready
from sparkmirror.pump.stage import Stage

PROMPT_S, MUTED_S = GRACE_S - 1, LATE_S - 1
"""How late a request may arrive after its client has gone: one that went alone, and one that was pipelined."""


class Late(NamedTuple):
    """A request whose client has gone: the broker reads it yet."""

    data: bytes
    latest: float


class Request(NamedTuple):
    """A request on the wire."""

    data: bytes
    pipelined: bool


@dataclass
class World:
    """Time, and both sides."""

    source: Source
    target: TargetLog = field(default_factory=TargetLog)
    now: float = 1000.0
    late: list[deque[Late]] = field(default_factory=list)
    """Of each connection that nobody uses any more, in the order of sending."""

    def leave_behind(self, requests: deque[Request]) -> None:
        """Whoever sent them has gone, or has given the connection up."""
        if requests:
            latest = [self.now + (MUTED_S if one.pipelined else PROMPT_S) for one in requests]
            self.late.append(deque(Late(one.data, at) for one, at in zip(requests, latest, strict=True)))
            requests.clear()

    def arrives_late(self, which: int = 0) -> None:
        """A connection's mute ends: its next request is appended, or refused."""
        if self.late:
            connection = self.late[which % len(self.late)]
            self.target.append(connection.popleft().data, self.now)
            self.late = [each for each in self.late if each]

    def pass_time(self, seconds: float) -> None:
        """Time passes; what can't be any later arrives."""
        end = self.now + seconds
        while self.late and (first := min(each[0].latest for each in self.late)) <= end:
            self.now = max(self.now, first)
            self.arrives_late([each[0].latest for each in self.late].index(first))
        self.now = end


class Pump:
    """What surrounds one `PartitionCopy`: its requests, answers, claims and readings, each on its way for a while."""

    def __init__(
        self,
        world: World,
        incarnation: int = 1,
        *,
        unclean: bool = False,
        until: int | None = -1,
        in_flight: int = 5,
        merge_tiny: bool = False,
        reported: ReportedProgress = NOTHING_REPORTED,
    ) -> None:
        self.world = world
        self.identity = world.target.identity
        self.alone_at = world.now + GRACE_S if unclean else world.now
        """When no pump from before can be alive any more."""
        self.pool = FramePool(1 << 20, keep=2)
        self.copy = PartitionCopy(
            ROUTE,
            self.identity,
            incarnation,
            until=world.source.end if until == -1 else until,
            from_latest=False,
            unclean=unclean,
            fresh_after_ms=FRESH_AFTER_MS,
            max_in_flight=in_flight,
            now=world.now,
            intake=Intake(read_committed=False, codec=None, merge_tiny=merge_tiny),
            reported=reported,
        )
        self.confirming: list[Claim] = []
        """Claims to be written again, confirmed."""
        self.question: Question | None = None
        """The last question about the target's settings."""
        self.requests: deque[Request] = deque()
        self.unconfirmed: deque[tuple[Ack, int]] = deque()
        """Answers that wait for replicas, each with the number of elections before it."""
        self.answers: deque[Ack] = deque()
        self.reading: PartitionReading | Refusal | None = None
        self.has_asked = False
        """Whether it has read a position, or tried to."""
        self.claiming: PendingClaim | None = None
        self.sent = 0

    def ready(self) -> Ready:
        """What the copy has to do; what it tells once is kept here."""
        ready = self.copy.ready(self.world.now)
        self.confirming += ready.confirm
        self.question = ready.question or self.question
        return ready

    # Each step does what is possible, and says whether it did something.

    def ask(self) -> bool:
        """The position is read at the target; the answer is on its way."""
        if not self.ready().read:
            return False
        self.copy.ask(self.world.now)
        self.has_asked = True
        self.reading = self.world.target.partition_reading(
            self.world.source, self.world.now, self.identity, self.copy.progress.reported
        )
        return True

    def hear(self) -> bool:
        """The reading arrives."""
        reading, self.reading = self.reading, None
        if isinstance(reading, PartitionReading):
            end = reading.position.sequence
            self.ready()
            self.confirming = [one for one in self.confirming if one.sequence + one.announced <= end]
            self.copy.take(reading, self.world.now)
        elif reading is not None:
            self.copy.refuse(reading, self.world.now)
        return reading is not None

    def fetch(self, batches: int = 3, pieces: int = 1000) -> bool:
        """A fetch answer arrives, and so much of it is made ready."""
        position = self.copy.fetch_position()
        if position is None:
            return False
        data = self.world.source.fetch(position.offset, batches)
        if not data:
            return False
        frame = self.pool.take(len(data) + HEADER_SIZE)
        frame.view[: len(data)] = data
        self.copy.feed(frame, frame.view[: len(data)], self.world.source.end)
        frame.release()
        self.prepare(pieces)
        return True

    def prepare(self, pieces: int = 1000) -> bool:
        """So much of what was fetched is made ready."""
        if not self.copy.backlog.unprepared:
            return False
        made = iter(range(1, pieces))
        self.copy.prepare(self.world.now, lambda: next(made, None) is None)
        return True

    def claim(self) -> bool:
        """A claim is written; the word that it is durable is on its way."""
        if self.claiming is not None or not (claims := self.ready().claims):
            return False
        self.claiming = claims[0]
        self.copy.claiming(1)
        self.world.target.claims.append(self.claiming.claim)
        return True

    def confirm(self) -> bool:
        """Claims are written again, confirmed."""
        self.ready()
        confirmed, self.confirming = self.confirming, []
        self.world.target.settle(confirmed, ())
        return bool(confirmed)

    def claimed(self) -> bool:
        """The claim is known to be durable."""
        claiming, self.claiming = self.claiming, None
        if claiming is not None:
            claiming.durable = True
            self.copy.claimed(self.world.now)
        return claiming is not None

    def send(self) -> bool:
        """The next batch is on the wire."""
        if self.ready().send_to is None:
            return False
        pipelined = self.copy.is_guarded(self.world.now)
        if not pipelined and (self.requests or self.unconfirmed or self.answers):
            return False  # an unguarded batch goes alone over its connection
        self.requests.append(Request(bytes(self.copy.send(self.world.now).view), pipelined))
        self.sent += 1
        return True

    def serve(self, error: int = 0) -> bool:
        """The broker takes a request, or refuses it with this error (7: it appends it all the same)."""
        if not self.requests or self.unconfirmed:
            return False
        request = self.requests.popleft().data
        if len(request) > self.world.target.max_bytes:
            error = ErrorCode.MESSAGE_TOO_LARGE
        if error and error != 7:
            self.answers.append(refused(error))
            return True
        target = self.world.target
        answer = target.append(request, self.world.now)
        if error and not answer.error:
            self.answers.append(refused(7, answer.base_offset))
        elif answer.error or target.high_watermark == len(target.log):
            self.answers.append(answer)
        else:
            self.unconfirmed.append((answer, target.elections))
        return True

    def receive(self) -> bool:
        """An answer arrives."""
        target = self.world.target
        while self.unconfirmed and (target.replicated is None or self.unconfirmed[0][1] != target.elections):
            answer, elections = self.unconfirmed.popleft()
            self.answers.append(answer if elections == target.elections else refused(NOT_LEADER))
        if not self.answers:
            return False
        self.copy.acknowledge(self.answers.popleft(), self.world.now)
        return True

    def lose(self, served: int = 0) -> None:
        """The connection breaks, after the broker has taken some more of the requests; the others arrive late."""
        for _ in range(served):
            self.serve()
        pipelined = any(one.pipelined for one in self.requests)
        self.world.leave_behind(self.requests)
        self.unconfirmed.clear()
        self.answers.clear()
        self.ready()
        self.confirming.clear()
        self.copy.lost_in_flight(self.world.now, "the connection broke", pipelined=pipelined)

    def dies(self) -> None:
        """It is killed; what it has sent arrives late."""
        self.world.leave_behind(self.requests)
        self.copy.give_up()

    def watch(self) -> bool:
        """The watch over copies at rest compares the high watermark; True if the copy looks again."""
        rests_at = self.copy.rests_at
        if rests_at is None or self.world.target.high_watermark >= rests_at:
            return False
        self.copy.look_again("the high watermark is too low", self.world.now)
        return True

    def leave(self) -> ReportedProgress:
        """It releases the partition: what is not sent is dropped, and what is on its way arrives."""
        self.copy.drop_unsent()
        while self.hear() or self.claimed() or self.serve() or self.receive():
            self.copy.drop_unsent()
        self.confirm()
        assert self.copy.is_idle
        return self.copy.progress.reported

    def take_over(self, settled: PartitionReading) -> None:
        """It continues where another pump says that it was."""
        self.copy.ask(self.world.now)
        self.copy.take(settled, self.world.now)

    def settle(self) -> None:
        """All that can happen at this moment happens."""
        steps = (
            self.ask,
            self.hear,
            self.claim,
            self.claimed,
            self.send,
            self.serve,
            self.receive,
            self.confirm,
            self.prepare,
            self.fetch,
        )
        while any(step() for step in steps):
            pass

    def start(self) -> None:
        """The position is known."""
        assert self.ask()
        assert self.hear()

    def finish(self, patience: int = 60, *, parks: bool = False) -> None:
        """No more faults: it must come to its end, or park."""
        for _ in range(patience):
            self.settle()
            if self.copy.stage is Stage.DONE or (parks and self.copy.stage is Stage.PARKED):
                return
            self.world.pass_time(max(self.copy.retry.at - self.world.now, 0.0))
        raise AssertionError(f"{self.copy.stage}: {self.copy.trouble.reason}")


def a_world(batches: int = 12, timestamp_ms: int = FRESH_MS) -> World:
    return World(Source([(10, timestamp_ms)] * batches))


def running(world: World, *, unclean: bool = False) -> Pump:
    """A pump that has copied its first three batches and has fetched more."""
    pump = Pump(world, unclean=unclean)
    pump.start()
    if unclean and pump.copy.stage is Stage.SEEKING:
        world.now += GRACE_S
        pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    for _ in range(3):
        pump.send()
        pump.serve()
        pump.receive()
    pump.fetch()
    assert len(world.target.log) == 30
    return pump


def assert_exact(world: World) -> None:
    assert world.target.log == list(range(len(world.target.log)))
