"""The receipts topic: live figures from pumps, for any process that wants to watch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from sparkmirror.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.messages.orders import FlowReport


def receipts_topic(source_alias: str) -> str:
    """Its name ends so that no MirrorMaker 2 mirrors it."""
    return f"mm2-sparkmirror-receipts.{source_alias}.internal"


def publish(log: TopicLog, reports: Iterable[FlowReport]) -> None:
    """Append reports; the key tells pumps apart."""
    log.append(0, [(report.pump.encode(), report.model_dump_json().encode()) for report in reports])


def read_reports(entries: Iterable[LogEntry]) -> Iterator[FlowReport]:
    """Reports in order; what another version of sparkmirror wrote differently is left out."""
    for _, _, value in entries:
        if value is not None:
            try:
                yield FlowReport.model_validate_json(value)
            except ValidationError:
                continue
