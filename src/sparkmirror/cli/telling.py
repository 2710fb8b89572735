"""Orders to running mirrors, through the control topics."""

from __future__ import annotations

from collections.abc import Callable

import typer

from sparkmirror.cli.loading import chosen_flows
from sparkmirror.cli.output import Format, print_json
from sparkmirror.config import MirrorConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.control import Control, control_topic


def tell(config: MirrorConfig, wanted: str | None, say: Callable[[Control], None], said: str, output: Format) -> None:
    """Say an order to the flows that `wanted` chooses.

    Raises `ConfigError` and `ClusterUnreachable`.
    """
    told = []
    for flow in chosen_flows(config, wanted):
        client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-cli")
        try:
            say(Control(TopicLog(client, control_topic(flow.source.alias))))
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error
        finally:
            client.close()
        if output is Format.TEXT:
            typer.echo(f"{flow.name}: {said}")
        told.append({"flow": flow.name, "said": said})
    if output is Format.JSON:
        print_json(told)
