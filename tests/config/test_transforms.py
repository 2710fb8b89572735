"""Transforms and queries in a file: what counts, what is shown, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config.effective import MASK
from sparkmirror.config.flow_settings import differences, flow_settings
from sparkmirror.config.model import MirrorConfig, TransformQuery
from sparkmirror.errors import ConfigError

Load = Callable[..., MirrorConfig]

MASKING = """
us->eu.transforms = mask
us->eu.transforms.mask.type = org.apache.kafka.connect.transforms.MaskField$Value
us->eu.transforms.mask.fields = card
transforms.mask.fields = all
"""
QUERY = "transform.q.topics = orders, cards.*\nus->eu.transform.q.sql = SELECT * FROM records"


def test_a_flows_key_counts_before_the_same_key_for_all(load: Load) -> None:
    (flow,) = load(MASKING).flows
    assert flow.connect_transforms == {
        "transforms": "mask",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "card",
    }
    assert flow.transform_queries == ()


def test_a_query_has_topics_and_sql(load: Load) -> None:
    config = load(QUERY)
    (flow,) = config.flows
    assert flow.transform_queries == (
        TransformQuery(name="q", topics=("orders", "cards.*"), sql="SELECT * FROM records"),
    )
    assert not [line for line in config.warnings if "transform" in line]


def test_routers_make_a_query_of_all_topics(load: Load) -> None:
    (flow,) = load(
        "transforms = r\ntransforms.r.type = org.apache.kafka.connect.transforms.RegexRouter\n"
        "transforms.r.regex = a\ntransforms.r.replacement = b"
    ).flows
    (query,) = flow.transform_queries
    assert query.is_connect
    assert query.topics == (".*",)


@pytest.mark.parametrize(
    ("lines", "key", "part"),
    [
        ("transform.q.sql = SELECT 1", "transform.q.topics", "is missing: a query has both"),
        ("transform.q.topics = a\ntransform.q.sql =", "transform.q.sql", "is missing: a query has both"),
        ("transform.q.topics = (\ntransform.q.sql = SELECT 1", "transform.q.topics", "("),
        (f"{QUERY}\ntransform.q.where = x", "transform.q.where", "a query has sql and topics, and no where"),
        (MASKING.replace("fields = card", "field = card"), "us->eu.transforms.mask.field", "did you mean"),
        ("transforms = mask", "transforms.mask.type", "it is missing: write a class"),
    ],
)
def test_mistakes_name_the_key_and_the_way_out(load: Load, lines: str, key: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(lines)
    told = {mistake.key: mistake.reason for mistake in caught.value.mistakes}
    assert part in told[key]


def test_a_transform_that_nothing_names_is_told(load: Load) -> None:
    warnings = load(MASKING + "transforms.other.type = x").warnings
    assert [line for line in warnings if "transforms.other.type: has no effect: no transform or predicate" in line]


def test_deployments_that_differ_in_transforms_say_so(load: Load) -> None:
    (one,), (other,) = load(MASKING + QUERY).flows, load(MASKING.replace("card", "iban")).flows
    told = differences(one, flow_settings(other))
    assert "transforms.mask.fields: `iban` there, `card` here" in told
    assert "transform.q.sql: `` there, `SELECT * FROM records` here" in told
    assert MASK not in str(told)
