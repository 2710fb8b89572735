"""Memory for what is received: one buffer per frame, used again when nothing points into it.

Fresh pages cost the kernel more than the bytes cost to copy; large buffers are kept and reused.
"""

from __future__ import annotations

POOLED_FROM = 64 * 1024
"""Smaller frames get memory of their own: it is cheaper than keeping them."""


class Frame:
    """One received frame. `hold()` for each batch that points into it, `release()` when it is done."""

    __slots__ = ("_block", "_holders", "_pool", "size", "view")

    def __init__(self, pool: FramePool, block: bytearray, size: int) -> None:
        self._pool = pool
        self._block = block
        self._holders = 1
        self.size = size
        self.view = memoryview(block)[:size]

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._pool.give_back(self._block, self.size)


class FramePool:
    """Gives frames and counts the bytes in use; `block_size` is that of the buffers it keeps."""

    def __init__(self, block_size: int, keep: int) -> None:
        self._block_size = block_size
        self._keep = keep
        self._free: list[bytearray] = []
        self.in_use = 0
        """Bytes in frames that somebody still holds."""

    def take(self, size: int) -> Frame:
        self.in_use += size
        if size < POOLED_FROM or size > self._block_size:
            return Frame(self, bytearray(size), size)
        block = self._free.pop() if self._free else bytearray(self._block_size)
        return Frame(self, block, size)

    def give_back(self, block: bytearray, size: int) -> None:
        self.in_use -= size
        if len(block) == self._block_size and len(self._free) < self._keep:
            self._free.append(block)
