"""Memory for received frames: counted while held, used again only when nobody points into it."""

from __future__ import annotations

from mmap import mmap

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sparkmirror.kafka.wire.buffers import POOLED_SHARE, Frame, FramePool

POOLED_FROM = 64 * 1024
BLOCK = POOLED_SHARE * POOLED_FROM


def test_a_block_is_used_again_after_the_last_release() -> None:
    pool = FramePool(BLOCK, keep=1)
    frame = pool.take(POOLED_FROM)
    block = frame.view.obj
    frame.hold()
    frame.hold()
    for _ in range(2):
        frame.release()
        assert pool.take(POOLED_FROM).view.obj is not block
    frame.release()
    assert pool.take(BLOCK).view.obj is block


def test_no_more_blocks_are_kept_than_asked_for() -> None:
    pool = FramePool(BLOCK, keep=2)
    frames = [pool.take(BLOCK) for _ in range(3)]
    blocks = [frame.view.obj for frame in frames]
    for frame in frames:
        frame.release()
    again = [pool.take(BLOCK).view.obj for _ in range(3)]
    assert sum(any(one is block for block in blocks) for one in again) == 2


def test_small_and_oversize_frames_get_memory_of_their_own() -> None:
    pool = FramePool(BLOCK, keep=9)
    for size in (0, 1, POOLED_FROM - 1, BLOCK + 1):
        frame = pool.take(size)
        assert isinstance(frame.view.obj, mmap if size > BLOCK else bytearray)
        assert len(frame.view.obj) == len(frame.view) == frame.size == size
        frame.release()
    assert pool.in_use == 0
    assert len(pool.take(POOLED_FROM).view) == POOLED_FROM


def small(frame: Frame) -> bool:
    """Whether it has memory of its own, of just its size."""
    return not POOLED_FROM <= frame.size <= BLOCK


class Pool(RuleBasedStateMachine):
    """Frames taken, filled, held and released in any order: each keeps its bytes, and all are counted."""

    @initialize(keep=st.integers(0, 3))
    def start(self, keep: int) -> None:
        self.pool = FramePool(BLOCK, keep)
        self.held: list[tuple[Frame, int, int]] = []
        self.filled = 0

    @rule(size=st.sampled_from([0, 1, POOLED_FROM - 1, POOLED_FROM, POOLED_FROM + 1, BLOCK, BLOCK + 1]))
    def take(self, size: int) -> None:
        frame = self.pool.take(size)
        frame.fill(size)
        assert len(frame.view) == frame.size == size
        self.filled = self.filled % 255 + 1
        if size:
            frame.view[0] = frame.view[-1] = self.filled
        self.held.append((frame, 1, self.filled))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.held) - 1))
        frame, holders, filled = self.held[at]
        frame.hold()
        self.held[at] = frame, holders + 1, filled

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        frame, holders, filled = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        frame.release()
        if holders > 1:
            self.held.append((frame, holders - 1, filled))

    @invariant()
    def bytes_in_use_are_counted(self) -> None:
        assert self.pool.in_use == sum(frame.view.nbytes if small(frame) else BLOCK for frame, _, _ in self.held)

    @invariant()
    def what_is_held_is_left_alone(self) -> None:
        for frame, _, filled in self.held:
            assert not frame.size or frame.view[0] == frame.view[-1] == filled


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
