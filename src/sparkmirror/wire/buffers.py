"""Memory for what is received: one buffer per frame, used again when nothing points into it.

Fresh pages cost the kernel more than the bytes cost to copy; large buffers are kept and reused.
"""

from __future__ import annotations

from mmap import mmap

POOLED_SHARE = 4
"""Frames smaller than this part of a block get memory of their own: a block would be mostly empty."""


class Frame:
    """One received frame. `hold()` for each batch that points into it, `release()` when it is done."""

    __slots__ = ("_block", "_counted", "_holders", "_pool", "size", "view")

    def __init__(self, pool: FramePool, block: bytearray | mmap, size: int) -> None:
        self._pool = pool
        self._block = block
        self._counted = 0
        """Bytes that it counts for in the pool."""
        self._holders = 1
        self.size = size
        self.view = memoryview(block)[:size]

    def beside(self, data: bytearray) -> Frame:
        """A frame of other bytes, counted in the same pool."""
        return self._pool.adopt(data)

    def fill(self, size: int) -> None:
        """So many bytes of it are used by now: of memory that is mapped only those count."""
        size = size if isinstance(self._block, mmap) else len(self._block)
        self._pool.in_use += size - self._counted
        self._counted = size

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._pool.give_back(self._block, self._counted)


class FramePool:
    """Gives frames and counts the bytes in use; `block_size` is that of the buffers it keeps."""

    def __init__(self, block_size: int, keep: int) -> None:
        self._block_size = block_size
        self._keep = keep
        self._free: list[bytearray] = []
        self.in_use = 0
        """Bytes of the buffers that somebody still holds."""

    def take(self, size: int) -> Frame:
        """Memory for a frame of this size. If that is more than a block, pages are taken as they are written to: the
        size is only what a broker says.
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

    def adopt(self, data: bytearray) -> Frame:
        """Count bytes that were made elsewhere, until their frame is released."""
        frame = Frame(self, data, len(data))
        frame.fill(len(data))
        return frame

    def clear(self) -> None:
        """Keep no buffer any more."""
        self._free.clear()
        self._keep = 0

    def give_back(self, block: bytearray | mmap, counted: int) -> None:
        self.in_use -= counted
        if isinstance(block, bytearray) and len(block) == self._block_size and len(self._free) < self._keep:
            self._free.append(block)
