"""Creations under a quota: the told wait is kept, and what was refused is asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.mutation_quota import SHORTEST_S, MutationAnswers, as_quota_allows
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.error_codes import ErrorCode

OVER = int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class PlayedController:
    """Takes so many topics at a time, and asks to wait after each refusal."""

    def __init__(self, at_once: int, throttle_s: float) -> None:
        self.at_once, self.throttle_s = at_once, throttle_s
        self.asked: list[list[str]] = []
        self.waited: list[float] = []

    def ask(self, names: Sequence[str]) -> MutationAnswers:
        self.asked.append(list(names))
        topics = {name: (OVER if place >= self.at_once else 0, "") for place, name in enumerate(names)}
        return MutationAnswers(topics, self.throttle_s)

    def create(self, names: Sequence[str], patience_s: float) -> MutationAnswers:
        return as_quota_allows(self.ask, names, patience_s, self.waited.append, lambda: sum(self.waited))


def test_what_was_refused_is_asked_for_again_after_the_told_wait() -> None:
    controller = PlayedController(2, 1.5)
    answers = controller.create("abcde", 60.0)
    assert controller.asked == [list("abcde"), list("cde"), ["e"]]
    assert controller.waited == [1.5, 1.5]
    assert (answers.topics, answers.over_quota) == (dict.fromkeys("abcde", (0, "")), [])


def test_no_wait_is_begun_that_is_longer_than_the_patience() -> None:
    controller = PlayedController(2, 4.0)
    answers = controller.create("abcdefg", 5.0)
    assert (controller.waited, answers.over_quota, answers.throttle_s) == ([4.0], list("efg"), 4.0)
    assert PlayedController(0, 9.0).create("a", 5.0).over_quota == ["a"]


def test_a_controller_that_tells_no_wait_is_not_asked_without_end() -> None:
    controller = PlayedController(0, 0.0)
    controller.create("a", 1.0)
    assert set(controller.waited) == {SHORTEST_S}


def test_other_refusals_are_final() -> None:
    answers = as_quota_allows(lambda names: MutationAnswers(dict.fromkeys(names, (17, "no"))), ["a"], 60.0)
    assert answers == MutationAnswers({"a": (17, "no")})


def limit(cluster: KafkaCluster, mutations_per_s: float | None) -> None:
    """Of topics' partitions that clients of the default kind may create."""
    entry = AlterClientQuotasRequest.EntryData
    whose = entry.EntityData(entity_type="client-id", entity_name="quota-test")
    change = entry.OpData(key="controller_mutation_rate", value=mutations_per_s or 0.0, remove=mutations_per_s is None)
    admin = of(cluster, "others")
    (told,) = admin._ask(  # noqa: SLF001
        "setting a quota",
        lambda client: client.ask_any(
            lambda: AlterClientQuotasRequest(entries=[entry(entity=[whose], ops=[change])], validate_only=False)
        ),
    ).entries
    admin.close()
    assert not told.error_code


def of(cluster: KafkaCluster, role: str) -> ClusterAdmin:
    config = ClusterConfig(alias="B", bootstrap_servers=(cluster.bootstrap_servers,), client_id=role)
    return ClusterAdmin.connect(config, role, 15.0)


@pytest.mark.broker
def test_a_real_controller_is_waited_for(target_cluster: KafkaCluster, topic_name: str) -> None:
    """The first topics use up its burst, the rest comes with its rate; what is left is told with its wait."""
    limit(target_cluster, 2.0)
    try:
        admin = of(target_cluster, "quota-test")
        admin.quota_patience_s = 0.0
        left: list[NewTopicSpec] = []
        turns = count()

        def is_limited() -> bool:
            """The quota counts a moment after it was set."""
            specs = [NewTopicSpec(f"{topic_name}-{next(turns)}", 8, 1) for _ in range(6)]
            answers = admin.creations(specs)
            left[:] = [spec for spec in specs if answers[spec.name][0] == OVER]
            return bool(left)

        mp.wait_for(is_limited, 60, "some are refused")
        assert 0 < admin.quota_wait_s < 60
        admin.quota_patience_s = 60.0
        assert admin.creations(left) == {spec.name: (0, "") for spec in left}
        assert admin.quota_wait_s == 0.0
        admin.close()
    finally:
        limit(target_cluster, None)
