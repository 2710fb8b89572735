"""`sparkmirror clusters`: the clusters of the flows, and those that answer."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load, only_flow
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.mirror.engine.accepted_source import FlowClusters, accept_source, flow_clusters

DIFFERENT_EXIT = 1


def clusters(
    file: File,
    flow: Flow = None,
    accept_source_now: Annotated[
        bool,
        typer.Option("--accept-source", help="Have the flow copy from the cluster that answers as its source now."),
    ] = False,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Tell which cluster each flow copies from, and which answers as its source.

    A flow copies from one cluster, by its cluster id, whatever its names and addresses lead to. Was
    the source rebuilt, it is another cluster: its topics are other topics. After --accept-source a
    flow copies them from their beginning, after what is in the copies, and the loss ledger names
    each topic. Stop the flow's processes before, and start them afterwards.

    Exit codes: 0 each flow's clusters are right (or now accepted), 1 another cluster answers, 2 the
    file is wrong, or the source can't be accepted, 3 a cluster can't be reached.

    Example: sparkmirror clusters mm2.properties
    """
    config = load(file, clusters, secrets=secrets)
    flows = [only_flow(config, flow)] if accept_source_now else chosen_flows(config, flow)
    looks = [(each, flow_clusters(each)) for each in flows]
    accepted = False
    if accept_source_now:
        ((each, look),) = looks
        _accept(each, look)
        accepted = True
    if output is Format.JSON:
        print_json([_row(each, look, accepted) for each, look in looks])
    else:
        for each, look in looks:
            typer.echo(f"flow {each.name}: {_words(each, look, accepted)}")
    if any((look.is_another and not accepted) or look.is_one_cluster for _, look in looks):
        raise typer.Exit(DIFFERENT_EXIT)


def _accept(flow: FlowConfig, look: FlowClusters) -> None:
    if look.is_one_cluster:
        raise ConfigError(_one_cluster(flow, look), origin=f"flow {flow.name}")
    if not look.is_another:
        raise ConfigError(
            f"{flow.source.alias} is cluster {look.source_id}, which the flow copies from", origin=f"flow {flow.name}"
        )
    if look.agreed.topics and not (look.agreed.tells_topics_apart and look.source_tells_topics_apart):
        raise ConfigError(
            "its source tells no topic ids (Kafka before 2.8), so that topics of the new cluster can't be told from "
            "those that were copied: delete the flow's copies and the topic "
            f"{segments_topic(flow.source.alias)} at {flow.target.alias}, and the flow begins again",
            origin=f"flow {flow.name}",
        )
    accept_source(flow, look)


def _row(flow: FlowConfig, look: FlowClusters, accepted: bool) -> dict[str, Any]:
    agreed = look.agreed.source
    return {
        "flow": flow.name,
        "source": flow.source.alias,
        "source_cluster_id": look.source_id,
        "agreed_source_cluster_id": look.source_id if accepted else agreed.cluster_id if agreed is not None else None,
        "target": flow.target.alias,
        "target_cluster_id": look.target_id,
        "copied_topics": look.agreed.topics,
    }


def _words(flow: FlowConfig, look: FlowClusters, accepted: bool) -> str:
    source, target, agreed = flow.source.alias, flow.target.alias, look.agreed.source
    if look.is_one_cluster:
        return _one_cluster(flow, look)
    copied = f"{look.agreed.topics:,} topics were copied" if look.agreed.topics else "nothing was copied yet"
    if accepted:
        return (
            f"copies from cluster {look.source_id} as {source} from its next start on; {copied} from the cluster "
            "before: each one that the new cluster has is copied from its beginning, after what is in the copy"
        )
    if agreed is None:
        return f"{source} is cluster {look.source_id}, {target} is cluster {look.target_id}; the flow has not begun"
    if look.is_another:
        return (
            f"as {source} answers cluster {look.source_id}, and the flow copies from cluster {agreed.cluster_id} "
            f"({copied}): nothing is copied. See where the names of {source} lead to; or, if {source} was rebuilt, "
            f"add --accept-source --flow '{flow.name}': each topic is then copied from its beginning, after what is in "
            "the copy"
        )
    return f"{source} is cluster {look.source_id}, {target} is cluster {look.target_id}, as agreed; {copied}"


def _one_cluster(flow: FlowConfig, look: FlowClusters) -> str:
    return (
        f"{flow.source.alias} and {flow.target.alias} are the same cluster, {look.source_id}: records would be copied "
        "for ever; see where their names lead to"
    )
