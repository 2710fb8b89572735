"""A migration from Python: look, check, plan, switch."""

from __future__ import annotations

from sparkmirror.migrate.migration import Migration
from sparkmirror.migrate.switch_plan import SwitchGoal

__all__ = ["Migration", "SwitchGoal"]
