"""Who was refused asks again rarely, whoever asks; a mend is noticed."""

from __future__ import annotations

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.sign_in_pause import LONGEST_PAUSE_S, SignInPause, sign_in_pause
from sparkmirror.kafka.wire.rpc import BrokerUnreachable, SignInRefused


class Broker:
    """Counts who gets through, and refuses or not."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked = 0
        self.refuses = True
        self.pause = SignInPause(lambda: self.now)

    def dial(self) -> str:
        try:
            with self.pause.passage():
                self.asked += 1
                if self.refuses:
                    raise SignInRefused("no")
        except SignInRefused as error:
            return str(error)
        return "in"


def test_a_refusal_is_remembered_and_a_mend_noticed() -> None:
    broker = Broker()
    for _ in range(600):  # ten times a second, for a minute
        assert broker.dial() == "no"
        broker.now += 0.1
    assert broker.asked <= 11
    broker.refuses = False
    ended = broker.now + LONGEST_PAUSE_S + 0.1
    while broker.dial() != "in":
        broker.now += 0.1
        assert broker.now < ended
    assert [broker.dial() for _ in range(5)] == ["in"] * 5


def test_while_one_asks_the_others_wait_for_what_it_hears() -> None:
    broker = Broker()
    broker.dial()
    broker.now += 60
    with broker.pause.passage(), pytest.raises(SignInRefused), broker.pause.passage():
        pytest.fail("two at a time")


def test_other_troubles_close_nothing() -> None:
    broker = Broker()
    broker.refuses = False
    for _ in range(3):
        with pytest.raises(BrokerUnreachable), broker.pause.passage():
            raise BrokerUnreachable("gone")
    assert broker.dial() == "in"


def test_each_broker_and_each_way_has_its_own() -> None:
    one = ClusterConfig(alias="us", bootstrap_servers=("a:1",), security_protocol="SASL_SSL")
    other = one.model_copy(update={"alias": "eu"})
    assert sign_in_pause(one, "a", 1) is sign_in_pause(one, "a", 1)
    brokers = ((one, "a", 1), (one, "a", 2), (one, "b", 1), (other, "a", 1))
    assert len({sign_in_pause(*broker) for broker in brokers}) == 4
