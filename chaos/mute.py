"""A target that throttles for long: what was already sent to it is appended when the throttle ends (KIP-219).

A broker whose quota is used up answers at once, says for how long, and reads no more from that connection until then.
What the mirror had sent over it waits in the socket, also after the connection's end, and is appended half a minute
later. By then the broker has forgotten that it has old records already. A connection has one such request more:
so the load is hushed for a moment, and the fault writes first one record to each partition of `orders` and `payments`,
for the request that is answered, then an old one to each of `archive` and `notes`, for the one that waits.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from http.client import HTTPException
from typing import Any

from kafka import KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from lab.proxy import Proxy
from lab.quotas import set_quota

from chaos.arena import NoVictim, wait_in_sync
from chaos.history import NOTE, bait
from chaos.load import OLD_MS
from chaos.mirror import kill, workers
from chaos.onlookers import fetched
from chaos.replicas import ask, wait_for
from chaos.words import FLOW, state_of
from chaos.world import World

_CLIENT = f"{FLOW}|sparkmirror-produce"
"""As the mirror's pumps call themselves to the target: a quota counts all of this name together."""
_TOPIC = "chaos.bulk"
_QUOTA = 20_000
_MUTED_S = 45
"""At least, as the bulk and the quota make it."""
_PIECE = 20_000
_ANSWERED, _WAITING = ("orders", "payments"), ("archive", "notes")
_OLD_S = 3.0
_PAUSE_S = 0.2
_HUSHED_S = 0.8
"""After so long what the load has written is copied; it may not rest for much longer before the proxies stall."""
_COPIED_TIMEOUT_S = 90.0
_POLL_S = 0.2
_SENT_S = 0.3
"""After so long the mirror has sent what was written."""
_KNOWN_S = 5.0
"""How long the mirror has been told of the throttle when it loses what it had sent."""
_OVER_S = 75.0
"""From the throttle until everything that was sent must have arrived."""
_TIMEOUT_S = 20.0
_FLUSH_S = 2.0


class MutedChannel:
    """All connections to the target are throttled for long, and then lost: with the workers, or without them."""

    lasts = False

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._cluster = world.arena.target
        self._kills = chance.random() < 0.5
        self._began = 0.0
        self.victim = "every worker" if self._kills else "every connection to the target"

    def begin(self) -> None:
        proxies = [broker.proxy for broker in self._cluster.brokers if broker.proxy is not None]
        if not proxies:
            raise NoVictim("no broker has a proxy")
        self._create()
        set_quota(self._cluster, "producer_byte_rate", _QUOTA, _CLIENT)
        try:
            self._mute(proxies)
            time.sleep(_KNOWN_S)
        finally:
            set_quota(self._cluster, "producer_byte_rate", None, _CLIENT)  # the mutes that are last all the same
        if self._kills:
            kill(workers())
        else:
            for proxy in proxies:
                proxy.drop_connections()

    def _mute(self, proxies: Sequence[Proxy]) -> None:
        topics, partitions = self._world.topics, range(self._world.partitions)
        self._wait_until_copied()
        with closing(self._bulk_producer()) as producer, ExitStack() as resting:
            with self._old_records():
                time.sleep(_OLD_S)
                resting.enter_context(self._world.load.hushed())
                time.sleep(_HUSHED_S)
            try:
                for proxy in proxies:
                    proxy.stall()
                for kinds, age_ms in ((_ANSWERED, 0), (_WAITING, OLD_MS)):
                    baits = {topics[kind]: bait(kind) for kind in kinds if kind in topics}
                    self._world.scribe.write_at_once(baits, partitions, age_ms)
                    time.sleep(_SENT_S)
                self._use_up(producer)
            finally:
                for proxy in proxies:
                    proxy.heal()
                self._began = time.monotonic()

    @contextlib.contextmanager
    def _old_records(self) -> Iterator[None]:
        """Write old records to `notes` meanwhile: where nothing has been copied for three seconds, the mirror reads the
        position before it sends anything, which it can't while the proxies stall."""
        ended = threading.Event()
        writer = threading.Thread(target=self._write_old, args=(ended,), name="old notes", daemon=True)
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()

    def _write_old(self, ended: threading.Event) -> None:
        topic, partitions = self._world.topics["notes"], range(self._world.partitions)
        with contextlib.suppress(NoVictim):  # what is not written to the source can't be in flight
            self._world.scribe.write_while(topic, NOTE, partitions, lambda: not ended.wait(_PAUSE_S), OLD_MS)

    def _wait_until_copied(self) -> None:
        """Wait until the mirror has caught up: else it sends something else first."""
        deadline = time.monotonic() + _COPIED_TIMEOUT_S
        while not self._has_caught_up():
            if time.monotonic() > deadline:
                raise NoVictim("the mirror is behind")
            time.sleep(_POLL_S)

    def _has_caught_up(self) -> bool:
        with contextlib.suppress(OSError, HTTPException, ValueError, LookupError):
            return state_of(fetched(self._world.deployment.port(), "/snapshot")[1])[0] == "caught up"
        return False

    def end(self) -> None:
        pass

    def settle(self) -> None:
        """Wait until all that was sent has arrived: another mirror's producer must not meet it."""
        time.sleep(max(self._began + _OVER_S - time.monotonic(), 0.0))
        wait_in_sync(self._cluster)

    def _create(self) -> None:
        """One partition at each broker."""
        brokers = [broker.node_id for broker in self._cluster.brokers]
        topic = NewTopic(_TOPIC, replica_assignments={number: [node] for number, node in enumerate(brokers)})

        def create(admin: Any) -> None:
            with contextlib.suppress(TopicAlreadyExistsError):
                admin.create_topics([topic])

        ask(self._cluster, create)
        wait_for(_TOPIC, lambda: bool(ask(self._cluster, lambda admin: _TOPIC in admin.list_topics())))

    def _bulk_producer(self) -> Any:
        """A producer of the mirror's name that knows all brokers, past their proxies."""
        producer: Any = KafkaProducer(
            bootstrap_servers=self._cluster.direct_servers,
            client_id=_CLIENT,
            acks=0,
            enable_idempotence=False,
            batch_size=2 * _QUOTA * _MUTED_S,
            linger_ms=100,
            max_block_ms=int(_TIMEOUT_S * 1000),
        )
        producer.partitions_for(_TOPIC)
        return producer

    def _use_up(self, producer: Any) -> None:
        """Write at once to every broker what the quota allows in that time."""
        for _ in range(_QUOTA * _MUTED_S // _PIECE):
            for number in range(len(self._cluster.brokers)):
                producer.send(_TOPIC, b"." * _PIECE, partition=number)
        with contextlib.suppress(KafkaError):
            producer.flush(_FLUSH_S)
