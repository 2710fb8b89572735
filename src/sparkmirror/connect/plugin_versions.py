"""Requested plug-in versions, as in Connect's syntax (KIP-891).

`latest` is any version, `4.3.1` and `[4.3.1]` are one version, `[4.0,5.0)` is a range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.version import Version

from sparkmirror.errors import HandledError

ANY_VERSION = "latest"
_RANGE = re.compile(r"(?P<from>[\[(]) *(?P<low>[\w.+-]{0,100}) *(?P<comma>,?) *(?P<high>[\w.+-]{0,100}) *(?P<to>[\])])")


class InvalidRange(HandledError, ValueError):
    """Text that is no version and no range."""


@dataclass(frozen=True)
class VersionRange:
    """Version range; `text` is as the user wrote it.

    Text that is no range contains nothing.
    """

    text: str

    def __contains__(self, version: str) -> bool:
        try:
            low, high = self._bounds()
        except InvalidRange:
            return False
        # An exclusive low bound and an inclusive high one lie just behind their version.
        at = Version(version), 0
        return (low is None or low <= at) and (high is None or at < high)

    def __str__(self) -> str:
        return self.text if self.text.startswith(("[", "(")) else f"[{self.text},{self.text}]"

    def check(self) -> None:
        """Raise `InvalidRange` if `text` is no range."""
        self._bounds()

    def _bounds(self) -> tuple[tuple[Version, int] | None, tuple[Version, int] | None]:
        if self.text == ANY_VERSION:
            return None, None
        match = _RANGE.fullmatch(self.text if self.text.startswith(("[", "(")) else f"[{self.text}]")
        try:
            if match and match["comma"]:
                low = (Version(match["low"]), int(match["from"] == "(")) if match["low"] else None
                high = (Version(match["high"]), int(match["to"] == "]")) if match["high"] else None
                if low is None or high is None or low < high:
                    return low, high
            elif match and not match["high"] and match["from"] + match["to"] == "[]":
                return (Version(match["low"]), 0), (Version(match["low"]), 1)
        except ValueError:
            pass
        raise InvalidRange(f"no version and no range such as [4.0,5.0): {self.text}")
