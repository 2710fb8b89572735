"""Memory for received frames: one buffer per frame, reused after its last user.

Reuse pays because the kernel takes longer to supply fresh pages than the program takes to copy the bytes. So the pool
keeps large buffers.
"""

from __future__ import annotations

import sys
from mmap import mmap

POOLED_SHARE = 4
"""Divisor of the block size that gives the smallest frame worth a block.

A smaller frame gets its own memory, because a block would be mostly empty.
"""


class Frame:
    """One received frame, with a count of its holders.

    Call `hold()` for each batch that points into the frame, and `release()` when the batch is done.
    """

    __slots__ = ("_arriving", "_block", "_counted", "_holders", "_pool", "size", "view")

    def __init__(self, pool: FramePool, block: bytearray | mmap, size: int) -> None:
        self._pool = pool
        self._block = block
        self._counted = 0
        """Bytes that the pool counts for this frame."""
        self._arriving = 0
        """Part of `_counted` that the pool counts as arriving."""
        self._holders = 1
        self.size = size
        self.view = memoryview(block)[:size]

    def sibling(self, data: bytearray) -> Frame:
        """Return a frame over other bytes, counted in the same pool."""
        return self._pool.adopt(data)

    def fill(self, size: int, *, whole: bool = True) -> None:
        """Tell the pool that the frame uses `size` bytes by now.

        Only these bytes count for mapped memory; other memory counts as a whole. A frame is arriving until it is
        `whole`.
        """
        size = size if isinstance(self._block, mmap) else len(self._block)
        arriving = 0 if whole else size
        self._pool.in_use += size - self._counted
        self._pool.arriving += arriving - self._arriving
        self._counted, self._arriving = size, arriving

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._pool.arriving -= self._arriving
            self._pool.give_back(self._block, self._counted)


class FramePool:
    """Source of frames, which counts the bytes in use.

    `block_size` is how large the pool's buffers are, `keep` how many free ones it keeps at most. `most` are the most
    bytes in use while a frame larger than a buffer arrives.
    """

    def __init__(self, block_size: int, keep: int, most: int = sys.maxsize) -> None:
        self._block_size = block_size
        self._keep = keep
        self.most = most
        self._free: list[bytearray] = []
        self.in_use = 0
        """Bytes in all buffers that still have a holder."""
        self.arriving = 0
        """Bytes of these whose frame has not come whole."""

    @property
    def held(self) -> int:
        """Bytes in whole frames that still have a holder."""
        return self.in_use - self.arriving

    def take(self, size: int) -> Frame:
        """Return memory for a frame of this size.

        A frame larger than a block gets mapped memory, whose pages the kernel supplies as they are written: the size is
        only a broker's claim.
        """
        block: bytearray | mmap
        if size > self._block_size:
            block = mmap(-1, size)
        elif size < self._block_size // POOLED_SHARE:
            block = bytearray(size)
        else:
            block = self._free.pop() if self._free else bytearray(self._block_size)
        frame = Frame(self, block, size)
        frame.fill(0)
        return frame

    def admits(self, size: int, *, begun: bool) -> bool:
        """True if a frame of this size may arrive, or arrive further if it has begun.

        A frame that fits into a block always may.
        """
        return size <= self._block_size or self.in_use + (0 if begun else size) <= self.most

    def adopt(self, data: bytearray) -> Frame:
        """Count bytes made outside the pool until their frame is released."""
        frame = Frame(self, data, len(data))
        frame.fill(len(data))
        return frame

    def clear(self) -> None:
        """Drop all free buffers, and keep none from now on."""
        self._free.clear()
        self._keep = 0

    def give_back(self, block: bytearray | mmap, counted: int) -> None:
        self.in_use -= counted
        if isinstance(block, bytearray) and len(block) == self._block_size and len(self._free) < self._keep:
            self._free.append(block)
