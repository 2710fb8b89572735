"""Columns of bytes, as the compiled loops take them (`kafka.wire.record_kernels`)."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_WIDTHS: dict[pa.DataType, Any] = {
    pa.binary(): np.int32,
    pa.string(): np.int32,
    pa.large_binary(): np.int64,
    pa.large_string(): np.int64,
}
"""Types made of bounds and bytes, with the type of their bounds."""


class ByteColumn(NamedTuple):
    """A column of binary or string."""

    bounds: Longs
    """Places in `data`, and the end."""
    data: Bytes
    present: Bytes
    """A byte a row, 0 for null."""

    @classmethod
    def of(cls, column: pa.Array) -> Self | None:
        """Return views over an array's buffers; None for a type without bytes."""
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_null(kind):
            return cls.nulls(len(column))
        if pa.types.is_fixed_size_binary(kind) or kind in (pa.binary_view(), pa.string_view()):
            column = column.cast(pa.large_binary())
        elif kind not in _WIDTHS:
            return None
        _, places, data = column.buffers()
        width = _WIDTHS[column.type]
        count, offset = len(column), column.offset
        if count:
            bounds = np.frombuffer(places, width, count + 1, offset * width().itemsize).astype(np.int64)
        else:
            bounds = np.zeros(1, np.int64)
        taken = np.frombuffer(data, np.uint8) if data is not None and data.size else _EMPTY
        return cls(bounds, taken, _present(column))

    @classmethod
    def nulls(cls, count: int) -> Self:
        """Return a column without any value."""
        return cls(np.zeros(count + 1, np.int64), _EMPTY, np.zeros(count, np.uint8))

    @property
    def parts(self) -> tuple[Longs, Bytes, Bytes]:
        return self.bounds, self.data, self.present


class HeaderColumn(NamedTuple):
    """A column of records' headers."""

    bounds: Longs
    """Places in `names` and `contents`, and the end."""
    names: ByteColumn
    contents: ByteColumn

    @classmethod
    def none(cls, count: int) -> Self:
        return cls(np.zeros(count + 1, np.int64), ByteColumn.nulls(0), ByteColumn.nulls(0))

    @property
    def parts(self) -> tuple[Longs, Longs, Bytes, Longs, Bytes, Bytes]:
        """The columns without the names' presence, since a header has a name."""
        return self.bounds, self.names.bounds, self.names.data, *self.contents.parts


_EMPTY: Bytes = np.zeros(0, np.uint8)


def _present(column: pa.Array) -> Bytes:
    if not column.null_count:
        return np.ones(len(column), np.uint8)
    bits = np.frombuffer(column.buffers()[0], np.uint8)
    first = column.offset
    begin, end = first // 8, (first + len(column) + 7) // 8
    return np.unpackbits(bits[begin:end], bitorder="little")[first % 8 :][: len(column)].copy()
