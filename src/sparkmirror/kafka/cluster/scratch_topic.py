"""Scratch topic: created, used for a moment, and deleted whatever happens.

The topic's name says when it was created, so that the next scratch topic's creator deletes the topics that killed
processes left behind.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka.protocol.admin import CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.errors import ClusterTrouble
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.refusal_lines import told
from sparkmirror.kafka.wire.error_codes import NOT_AUTHORIZED, ErrorCode
from sparkmirror.kafka.wire.rpc import UnsupportedBroker

PREFIX = "mm2-sparkmirror-append-check."
"""Name prefix; MirrorMaker 2 mirrors no topic with this prefix and `SUFFIX`."""
SUFFIX = ".internal"
LEFT_S = 300.0
"""A scratch topic's age, by its name, above which it counts as left behind.

Each use is much shorter, and clocks are roughly right.
"""

AS_SENT = {"compression.type": "producer", "message.timestamp.type": "CreateTime"}
"""Topic properties that store batches as sent, whatever the brokers' defaults are."""

_THERE_S = 5.0
_PAUSE_S = 0.01
_DELETE_TRIES, _DELETE_PAUSE_S = 3, 0.3
_TIMEOUT_MS = 10_000
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

log = logging.getLogger(__name__)


class NoScratchTopic(ClusterTrouble):
    """Error for a scratch topic that can't be made: one line with reason and advice."""


@contextmanager
def scratch_topic(client: ClusterClient, partitions: int) -> Iterator[TopicLeaders]:
    """Create a topic, wait for all partitions' leaders, and delete it at the end.

    Raises `NoScratchTopic`, and what `ClusterClient.ask` raises.
    """
    name = f"{PREFIX}{int(time.time()):x}-{os.urandom(4).hex()}{SUFFIX}"
    # A principal that may not delete the topic must not create it. If the principal may describe the topic, brokers
    # answer to a deletion only that the topic isn't there.
    for code in (_deleted(client, [name, *_left_behind(client)])[name], _emptied(client, name)):
        if code not in (ErrorCode.NONE, *_NOT_THERE):
            raise NoScratchTopic(_words("deleted", code, ""))
    try:
        code, message = _created(client, name, partitions)
        if code:
            raise NoScratchTopic(_words("created", code, message))
        yield _led(client, name, partitions)
    finally:
        _delete_surely(client, name)


def _left_behind(client: ClusterClient) -> list[str]:
    answer = client.ask_any(lambda: MetadataRequest(topics=None, allow_auto_topic_creation=False))
    names = [topic.name for topic in answer.topics]
    return [name for name in names if name.startswith(PREFIX) and name.endswith(SUFFIX) and _is_old(name)]


def _is_old(name: str) -> bool:
    made, dash, _ = name.removeprefix(PREFIX).partition("-")
    try:
        return bool(dash) and time.time() - int(made, 16) > LEFT_S
    except ValueError:
        return False


def _created(client: ClusterClient, name: str, partitions: int) -> tuple[int, str]:
    topic = CreateTopicsRequest.CreatableTopic
    answer = _at_controller(
        client,
        lambda: CreateTopicsRequest(
            topics=[
                topic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=-1,
                    assignments=[],
                    configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in AS_SENT.items()],
                )
            ],
            timeout_ms=_TIMEOUT_MS,
            validate_only=False,
        ),
        lambda answer: answer.topics,
    )
    outcome = answer.topics[0]
    return outcome.error_code, outcome.error_message or ""


def _led(client: ClusterClient, name: str, partitions: int) -> TopicLeaders:
    deadline = time.monotonic() + _THERE_S
    while True:
        topic = client.metadata([name])[name]
        led = [leader for leader in topic.partitions.values() if leader.leader >= 0]
        if not topic.error and len(led) == partitions:
            return topic
        if time.monotonic() > deadline:
            why = error_name(topic.error) if topic.error else "its partitions have no leaders"
            raise NoScratchTopic(
                f"a topic of sparkmirror's own was created, and is not there after {_THERE_S:.0f} s: {why}"
            )
        time.sleep(_PAUSE_S)


def _delete_surely(client: ClusterClient, name: str) -> None:
    """Delete the topic, with retries after refusals and broken connections.

    A topic that stays is named in the log.
    """
    why = grant = ""
    for turn in range(_DELETE_TRIES):
        if turn:
            client.hang_up()
            time.sleep(_DELETE_PAUSE_S)
        try:
            code = _deleted(client, [name])[name]
        except Exception as error:  # the topic must be deleted after any earlier error, too
            why = " ".join(str(error).split())
            continue
        if code in (ErrorCode.NONE, *_NOT_THERE):
            return
        why, grant = error_name(code), what_to_grant(code)
    log.warning(
        "cluster %s: topic %s could not be deleted, please do: %s%s",
        client.config.alias,
        name,
        why,
        grant,
        extra=Event.SCRATCH_TOPIC_LEFT.extra,
    )


def _deleted(client: ClusterClient, names: Sequence[str]) -> dict[str, int]:
    """Delete topics; return Kafka's error code for each name."""
    answer = _at_controller(
        client,
        lambda: DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names], timeout_ms=_TIMEOUT_MS
        ),
        lambda answer: answer.responses,
    )
    return {topic.name: topic.error_code for topic in answer.responses}


def _emptied(client: ClusterClient, name: str) -> int:
    """Ask to delete no record from an absent topic; return Kafka's error code.

    Brokers look for the right to delete first, and for the topic then. NONE if the brokers don't take the request.
    """
    topic = DeleteRecordsRequest.DeleteRecordsTopic
    records = topic.DeleteRecordsPartition(partition_index=0, offset=0)
    try:
        answer = client.ask_any(
            lambda: DeleteRecordsRequest(topics=[topic(name=name, partitions=[records])], timeout_ms=_TIMEOUT_MS)
        )
    except UnsupportedBroker:
        return ErrorCode.NONE
    code = answer.topics[0].partitions[0].error_code
    return code if code in NOT_AUTHORIZED else ErrorCode.NONE


def _at_controller(client: ClusterClient, request: Callable[[], Any], topics: Callable[[Any], Sequence[Any]]) -> Any:
    """Ask one broker after another, until the controller has answered.

    Before KRaft only the controller creates and deletes topics.
    """
    if not client.brokers:
        client.metadata([])
    answer, failure = None, None
    for node in client.brokers:
        try:
            answer = client.ask(node, request())
        except UnsupportedBroker as error:
            raise NoScratchTopic(f"a topic of sparkmirror's own can't be had: {error}") from error
        except ConnectionError as error:
            failure = error
            continue
        if all(topic.error_code != ErrorCode.NOT_CONTROLLER for topic in topics(answer)):
            break
    if answer is None:
        raise failure or NoScratchTopic("the cluster has no brokers")
    return answer


def _words(what: str, code: int, message: str) -> str:
    return f"a topic of sparkmirror's own can't be {what}: {told(code, message)}{what_to_grant(code)}"


def what_to_grant(code: int) -> str:
    """Return the advice to append to an error; empty if the error isn't about rights."""
    needed = f"; grant sparkmirror's principal CREATE, DELETE, READ and WRITE on topics that begin with {PREFIX}"
    return needed if code in NOT_AUTHORIZED else ""
