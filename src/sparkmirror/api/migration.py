"""A migration from Python: look, check, plan, switch."""

from __future__ import annotations

from sparkmirror.migrate.migration import Migration
from sparkmirror.migrate.planner import Goal

__all__ = ["Goal", "Migration"]
