"""Topic and group patterns that match nothing at the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.policy import DefaultGroupFilter, DefaultTopicFilter, GroupFilter, NamePatterns, matching
from sparkmirror.policy.near_names import hardly_meant, matches_any, nearest_names
from sparkmirror.snapshot.unmatched_pattern import UnmatchedPattern
from sparkmirror.veil import shown_patterns

_MOST_NAMED = 5
"""Most patterns in a sentence, and most patterns that names are looked for."""

_DEFAULT = FlowConfig.model_fields["topics_exclude"].default


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches between a flow's patterns and its source's topics or groups."""

    nothing: str = ""
    """Reason why nothing is wanted; empty if anything is."""
    unmatched: tuple[UnmatchedPattern, ...] = ()

    def news(self, before: Matches) -> list[str]:
        """Return a line for each finding that an earlier result lacks."""
        if self.nothing:
            return [self.nothing] if self.nothing != before.nothing else []
        return [f"nothing matches {each.words}" for each in self.unmatched if each not in before.unmatched]


def topic_matches(flow: FlowConfig, rules: TopicRules, at_source: Iterable[str]) -> Matches:
    """Match a flow's patterns with its source's topics.

    Internal topics and copies that would go back don't count. Nor do heartbeats, which every flow copies, unless they
    are listed by their name.
    """
    policy = rules.policy
    there = {
        name
        for name in at_source
        if not rules.never_copied(name) and (name in flow.topics or not policy.is_heartbeats_topic(name))
    }
    copied = any(map(rules.accepts, there))
    if type(rules.topics) is not DefaultTopicFilter:
        return Matches("" if copied else f"{flow.topic_filter_class} accepts no topic of {rules.source_alias}")
    unmatched = _unmatched("topics", flow.topics, there) if there else ()
    if flow.topics_exclude != _DEFAULT:
        unmatched += tuple(each for each in _unmatched("topics.exclude", flow.topics_exclude, there) if each.hint)
    return Matches("" if copied else _why_nothing(flow, rules, there, unmatched), unmatched)


def _why_nothing(
    flow: FlowConfig, rules: TopicRules, there: Collection[str], unmatched: Iterable[UnmatchedPattern]
) -> str:
    included = NamePatterns(flow.topics)
    left_out = next((name for name in sorted(there) if included.accepts(name)), "")
    if left_out:
        by = shown_patterns(matching(flow.topics_exclude, left_out))
        return f"topics.exclude leaves out every topic that topics matches: {by} matches {left_out}"
    if not there:
        return f"{rules.source_alias} has no topic that sparkmirror's principal may describe, but heartbeats at most"
    listed = [each.words for each in unmatched if each.key == "topics"]
    listed = listed or [shown_patterns(f"topics = {', '.join(flow.topics)}")]
    return f"no topic of {rules.source_alias} matches {_some(listed)}"


def group_matches(flow: FlowConfig, wanted: GroupFilter, at_source: Collection[str]) -> Matches:
    """Match a flow's patterns with its source's consumer groups."""
    alias, any_wanted = flow.source.alias, any(map(wanted.should_replicate_group, at_source))
    if type(wanted) is not DefaultGroupFilter:
        return Matches("" if any_wanted else f"{flow.group.group_filter_class} accepts no consumer group of {alias}")
    if not at_source:
        return Matches(f"{alias} has no consumer group that sparkmirror's principal may describe")
    unmatched = _unmatched("groups", flow.group.groups, at_source)
    if any_wanted:
        return Matches(unmatched=unmatched)
    if len(unmatched) < len(flow.group.groups):
        return Matches(f"groups.exclude leaves out every consumer group of {alias} that groups matches", unmatched)
    return Matches(f"no consumer group of {alias} matches {_some([each.words for each in unmatched])}", unmatched)


def _unmatched(key: str, patterns: Sequence[str], names: Collection[str]) -> tuple[UnmatchedPattern, ...]:
    unmatched = [pattern for pattern in patterns if pattern and not matches_any(pattern, names)]
    of_topics = key.startswith("topics")
    return tuple(
        UnmatchedPattern(
            key,
            shown_patterns(pattern),
            hardly_meant(pattern, of_topics=of_topics),
            nearest_names(pattern, names) if number < _MOST_NAMED else (),
        )
        for number, pattern in enumerate(unmatched)
    )


def _some(words: Sequence[str]) -> str:
    more = len(words) - _MOST_NAMED
    return "; ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
