"""Numbers and words on late offsets.

Late offsets came to the source after an operator had said that the topic's writers had moved (`topics done`).
"""

from __future__ import annotations

from typing import NamedTuple


class LateOffsets(NamedTuple):
    """A partition's late source offsets."""

    topic: str
    partition: int
    copied: int
    """Number of offsets copied before a pump heard the operator's word.

    Passed-over markers, and records lost at the source by then, count, too.
    """
    missing: int
    """Number of uncopied offsets."""
    recreated: bool = False
    """True if another topic has the name at the source now.

    Nothing is copied from the new topic.
    """

    @property
    def line(self) -> str:
        """Partition, numbers and remedy."""
        words = f"{self.topic}-{self.partition}: {late_words(self.copied, self.missing, recreated=self.recreated)}"
        remedy = "sparkmirror topics undo copies them"
        if not self.recreated:
            remedy += " unless a migration has moved the topic, topics done accepts them"
        return f"{words}: {remedy}" if self.missing else words


def late_words(copied: int, missing: int, *, recreated: bool) -> str:
    """Return the words on so many late offsets in a topic or a partition."""
    if recreated:
        return f"created again at the source after its writers had moved: {missing:,} offsets are not copied"
    came = f"{copied + missing:,} offsets came to the source after its writers had moved"
    if not copied:
        return f"{came}, and are not copied"
    if not missing:
        return f"{came}, and were copied or passed over before the pump heard of that"
    return f"{came}: {copied:,} were copied or passed over before the pump heard of that, {missing:,} are not copied"
