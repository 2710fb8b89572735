"""Days and times of the calendar in UTC, for any year from 1583 on."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.transforms.refusal import UnfitRecord

DAY_MS = 86_400_000
_EARLIEST_DAY = -141_349
"""1 January 1583: Java's years before are cut, or of the Julian calendar."""


def day_number(year: int, month: int, day: int) -> int:
    """Return a date's days since 1970.

    The month may lie beyond the year, the day beyond the month.
    """
    years, index = divmod(month - 1, 12)
    year += years - (index < 2)
    shifted = (index + 10) % 12
    eras, year_of_era = divmod(year, 400)
    day_of_year = (153 * shifted + 2) // 5 + day - 1
    return eras * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Milliseconds since 1970 as the calendar's fields."""

    days: int
    """Days since 1970."""
    day_ms: int
    """Milliseconds since midnight."""
    year: int
    month: int
    day: int

    @classmethod
    def at(cls, time_ms: int) -> Moment:
        """Raise `UnfitRecord` for times before 1583."""
        days, day_ms = divmod(time_ms, DAY_MS)
        see_calendar(days)
        eras, day_of_era = divmod(days + 719_468, 146_097)
        year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
        day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
        shifted = (5 * day_of_year + 2) // 153
        month = (shifted + 2) % 12 + 1
        day = day_of_year - (153 * shifted + 2) // 5 + 1
        return cls(days=days, day_ms=day_ms, year=eras * 400 + year_of_era + (month <= 2), month=month, day=day)

    @property
    def weekday(self) -> int:
        """0 for a Sunday."""
        return weekday(self.days)

    @property
    def week_year(self) -> int:
        return self.year + (self._sunday + 6 >= day_number(self.year + 1, 1, 1))

    @property
    def week(self) -> int:
        """Week of the year; the first one has 1 January, and weeks begin on Sundays."""
        first = day_number(self.week_year, 1, 1)
        return (self._sunday + 6 - first) // 7 + 1

    @property
    def week_of_month(self) -> int:
        return (self.day - 1 + weekday(day_number(self.year, self.month, 1))) // 7 + 1

    @property
    def day_of_year(self) -> int:
        return self.days - day_number(self.year, 1, 1) + 1

    @property
    def _sunday(self) -> int:
        return self.days - self.weekday


def weekday(days: int) -> int:
    """Return the day of the week of days since 1970: 0 for a Sunday."""
    return (days + 4) % 7


def see_calendar(days: int) -> None:
    """Raise `UnfitRecord` for days before 1583."""
    if days < _EARLIEST_DAY:
        raise UnfitRecord("its time is before 1583")
