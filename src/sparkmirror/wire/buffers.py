"""Memory for what is received: one buffer per frame, used again when nothing points into it.

Fresh pages cost the kernel more than the bytes cost to copy; large buffers are kept and reused.
"""

from __future__ import annotations

POOLED_SHARE = 4
"""Frames smaller than this part of a block get memory of their own: a block would be mostly empty."""


class Frame:
    """One received frame. `hold()` for each batch that points into it, `release()` when it is done."""

    __slots__ = ("_block", "_holders", "_pool", "size", "view")

    def __init__(self, pool: FramePool, block: bytearray, size: int) -> None:
        self._pool = pool
        self._block = block
        self._holders = 1
        self.size = size
        self.view = memoryview(block)[:size]

    def beside(self, data: bytearray) -> Frame:
        """A frame of other bytes, counted in the same pool."""
        return self._pool.adopt(data)

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._pool.give_back(self._block)


class FramePool:
    """Gives frames and counts the bytes in use; `block_size` is that of the buffers it keeps."""

    def __init__(self, block_size: int, keep: int) -> None:
        self._block_size = block_size
        self._keep = keep
        self._free: list[bytearray] = []
        self.in_use = 0
        """Bytes of the buffers that somebody still holds."""

    def take(self, size: int) -> Frame:
        if size < self._block_size // POOLED_SHARE or size > self._block_size:
            block = bytearray(size)
        else:
            block = self._free.pop() if self._free else bytearray(self._block_size)
        self.in_use += len(block)
        return Frame(self, block, size)

    def adopt(self, data: bytearray) -> Frame:
        """Count bytes that were made elsewhere, until their frame is released."""
        self.in_use += len(data)
        return Frame(self, data, len(data))

    def clear(self) -> None:
        """Keep no buffer any more."""
        self._free.clear()
        self._keep = 0

    def give_back(self, block: bytearray) -> None:
        self.in_use -= len(block)
        if len(block) == self._block_size and len(self._free) < self._keep:
            self._free.append(block)
