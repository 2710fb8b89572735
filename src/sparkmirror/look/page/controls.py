"""Actions on the page: pause, resume and throttle flows.

The actions write records to the flows' control topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.control import Control, ControlState, assert_patterns, control_topic


class Controls(Protocol):
    """Actions on flows, which are named as `A->B`.

    Each action returns one line about what was written. Actions raise `ConfigError` for a senseless request, and
    `ClusterUnreachable` if the control topic can't be written.
    """

    def pause(self, flow: str, topics: Sequence[str]) -> str:
        """Pause further source topics (regular expressions, full match)."""

    def resume(self, flow: str, topics: Sequence[str]) -> str:
        """Resume the topics of these expressions, given as in `pause`; none resumes all."""

    def throttle(self, flow: str, bytes_per_s: float | None, backfill: float | None) -> str:
        """Cap the flow's bandwidth, and its backfill's; None removes a cap.

        Backfill copies partitions that are far behind.
        """


class FlowControls:
    """`Controls` over flows' control topics.

    An action reads the paused topics before it writes the new set. So two people who pause at the same moment may undo
    each other's action; the page shows the result.
    """

    def __init__(self, flows: Callable[[], Sequence[FlowConfig]]) -> None:
        """`flows` returns the flows that accept actions now."""
        self._flows = flows

    def pause(self, flow: str, topics: Sequence[str]) -> str:
        """Implement `Controls.pause`."""
        if not topics:
            raise ConfigError("name the topics to pause", origin="pause")
        assert_patterns(topics, "pause")
        with self._log(flow) as log:
            paused = _paused(log)
            Control(log).pause([*paused, *(pattern for pattern in dict.fromkeys(topics) if pattern not in paused)])
        return f"{flow}: paused {', '.join(topics)}"

    def resume(self, flow: str, topics: Sequence[str]) -> str:
        """Implement `Controls.resume`."""
        with self._log(flow) as log:
            paused = _paused(log)
            if unknown := [pattern for pattern in topics if pattern not in paused]:
                raise ConfigError(
                    f"is not paused; paused {'is ' + ', '.join(paused) if paused else 'is nothing'}",
                    origin="resume",
                    key=unknown[0],
                )
            Control(log).pause([pattern for pattern in paused if topics and pattern not in topics])
        return f"{flow}: resumed {', '.join(topics) or 'all'}"

    def throttle(self, flow: str, bytes_per_s: float | None, backfill: float | None) -> str:
        """Implement `Controls.throttle`."""
        with self._log(flow) as log:
            Control(log).throttle(bytes_per_s, backfill)
        said = "no throttle" if bytes_per_s is None else f"at most {bytes_per_s:,.0f} bytes/s"
        return f"{flow}: {said}" + ("" if backfill is None else f", at most {backfill:,.0f} bytes/s of backfill")

    @contextmanager
    def _log(self, name: str) -> Iterator[TopicLog]:
        flows = {flow.name: flow for flow in self._flows()}
        if name not in flows:
            raise ConfigError(
                f"no such flow works here; there is {', '.join(flows) or 'none'}", origin="flow", key=name
            )
        flow = flows[name]
        client = ClusterClient(flow.target, f"{name}|sparkmirror-page")
        try:
            yield TopicLog(client, control_topic(flow.source.alias))
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {name}: {error}") from error
        finally:
            client.close()


def _paused(log: TopicLog) -> list[str]:
    entries, _ = log.read(0, 0)
    state = ControlState()
    state.apply(entries)
    return list(state.paused)
