"""What a flow's settings give each of its partitions' copies, and what each stay of a partition has of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from model_broker import IDENTITY, ROUTE
from model_pump import a_world

from sparkmirror.config import ClusterConfig, FetchConfig, FlowConfig, ProduceConfig
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.judged_claims import of_one_pump
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.kafka.wire.codecs import GZIP, LZ4, SNAPPY, ZSTD, Codec
from sparkmirror.pump import copies as copies_module
from sparkmirror.pump.copies import PartitionCopies, wanted_codec
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.messages.orders import FlowOrder, RouteOrder

LEVELS = {"compression_gzip_level": 1, "compression_lz4_level": 2, "compression_zstd_level": -7}


@pytest.mark.parametrize(
    ("word", "codec", "usual"),
    [
        ("none", None, None),
        ("gzip", Codec(GZIP, 1), Codec(GZIP, -1)),
        ("snappy", Codec(SNAPPY), Codec(SNAPPY)),
        ("lz4", Codec(LZ4, 2), Codec(LZ4, 9)),
        ("zstd", Codec(ZSTD, -7), Codec(ZSTD, 3)),
    ],
)
def test_a_codec_has_its_own_level(word: str, codec: Codec | None, usual: Codec | None) -> None:
    assert wanted_codec(ProduceConfig.model_validate({"compression_type": word, **LEVELS})) == codec
    assert wanted_codec(ProduceConfig(compression_type=word)) == usual


def ordered(routes: Iterable[RouteOrder], **flow: Any) -> FlowOrder:
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
    return FlowOrder(
        flow=FlowConfig(source=source, target=target, **flow),
        cluster_id=IDENTITY.cluster_id,
        producer_id=IDENTITY.producer_id,
        producer_epoch=IDENTITY.producer_epoch,
        routes=tuple(routes),
    )


def test_only_what_the_driver_names_heartbeats_is_not_transformed(monkeypatch: pytest.MonkeyPatch) -> None:
    changing: list[bool] = []

    def intake(**given: Any) -> Intake:
        changing.append(given["change"] is not None)
        return Intake(**given)

    monkeypatch.setattr(copies_module, "Intake", intake)
    masking = {
        "transforms": "mask",
        "transforms.mask.type": "MaskField$Value",
        "transforms.mask.fields": "card",
    }
    routes = [
        RouteOrder(source_topic=name, target_topic=f"A.{name}", partition=0, untransformed=name == "heartbeats")
        for name in ("device-heartbeats", "heartbeats")
    ]
    order = ordered(routes, connect_transforms=masking)
    PartitionCopies(order).add(order.routes, 0.0, unclean=False)
    assert changing == [True, False]


def test_each_stay_of_a_partition_has_claims_of_its_own() -> None:
    """Another task may have gone on in between: the second stay's claim must not replace the first one's record."""
    route = RouteOrder(source_topic=ROUTE.source_topic, target_topic=ROUTE.target_topic, partition=ROUTE.partition)
    order = ordered([route], fetch=FetchConfig(auto_offset_reset="latest"))
    copies, world, claims = PartitionCopies(order), a_world(), list[Claim]()
    for _ in range(2):
        (copy,) = copies.add([route], world.now, unclean=False)
        copy.ask(world.now)
        reading = world.target.partition_reading(world.source, world.now)
        assert isinstance(reading, PartitionReading)
        copy.take(reading, world.now)
        claims += [claim.claim for claim in copy.backlog.claims]
        copies.remove(copy)
    first, second = claims
    assert first.sequence == second.sequence
    assert first.key != second.key
    assert not of_one_pump(first, second)
