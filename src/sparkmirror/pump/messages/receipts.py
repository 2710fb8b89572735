"""Receipts topic: pumps' live figures, for any process that watches a flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.pump.messages.orders import FlowReport


def receipts_topic(source_alias: str) -> str:
    """Return the topic's name, with an ending that MirrorMaker 2 never mirrors.

    See "Internal topics" in docs/design.md.
    """
    return f"mm2-sparkmirror-receipts.{source_alias}.internal"


def publish(log: TopicLog, reports: Iterable[FlowReport]) -> None:
    """Append reports, each under the pump's name as the key."""
    log.append(0, [(report.pump.encode(), report.model_dump_json().encode()) for report in reports])


def read_reports(entries: Iterable[LogEntry]) -> Iterator[FlowReport]:
    """Yield the reports in order, without reports in unreadable form.

    Another sparkmirror version may write another form.
    """
    for _, _, value in entries:
        if value is not None:
            try:
                yield FlowReport.model_validate_json(value)
            except ValidationError:
                continue
