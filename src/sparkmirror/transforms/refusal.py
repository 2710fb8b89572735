"""Refusal of a record by a transform."""

from __future__ import annotations

from sparkmirror.errors import HandledError


class UnfitRecord(HandledError):
    """A transform can't take a record; the chain raises `TransformFailed` instead.

    The reason shows no part of the record.
    """
