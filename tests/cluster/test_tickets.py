"""Kerberos tickets without a KDC: when they are renewed, and what is said when something is wrong."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.config.credentials import Kerberos
from sparkmirror.kafka.cluster import tickets
from sparkmirror.kafka.cluster.ticket_troubles import explain
from sparkmirror.kafka.cluster.tickets import RENEWAL, Context, TicketKeeper, check_keytab
from sparkmirror.kafka.wire.sasl import SaslError

BY_KEYTAB = Kerberos("kafka", "mirror@R", keytab="/etc/mirror.keytab")
BY_CACHE = Kerberos("kafka", "", cache="/run/tickets")
BASE = 2529638912
"""Kerberos's first code, as the library has it: without a sign."""


class Trouble:
    def __init__(self, number: int, major: int = 13) -> None:
        self.maj_code, self.min_code = major << 16, BASE + number

    def get_all_statuses(self, code: int, is_maj: bool) -> list[str]:
        assert (code, is_maj) == (self.min_code, False)
        return ["its own\nwords"]


@pytest.mark.parametrize(
    ("login", "trouble", "part"),
    [
        (BY_KEYTAB, Trouble(195), "/etc/mirror.keytab has no key of mirror@R: klist -k lists its keys"),
        (BY_KEYTAB, Trouble(24), "refuses the key of mirror@R in the keytab /etc/mirror.keytab: export it again"),
        (BY_KEYTAB, Trouble(6), "the KDC knows no mirror@R: correct principal in sasl.jaas.config"),
        (BY_KEYTAB, Trouble(18), "mirror@R, which is locked or has expired"),
        (BY_KEYTAB, Trouble(156), "no KDC answers (its own words): see that it runs, and that krb5.conf"),
        (BY_KEYTAB, Trouble(37), "the clocks of this machine, the KDC and b1 differ (its own words): set them, by NTP"),
        (BY_KEYTAB, Trouble(7), "the KDC knows no such service (its own words): correct sasl.kerberos.service.name"),
        (
            BY_KEYTAB,
            Trouble(1 << 20, 12),
            "the tickets of mirror@R ended during the sign-in: the next try gets new ones",
        ),
        (BY_KEYTAB, Trouble(99), "Kerberos fails: its own words"),
        (BY_CACHE, Trouble(195), "the ticket cache /run/tickets has no tickets: type kinit"),
        (BY_CACHE, Trouble(32), "the ticket cache /run/tickets has only expired tickets: type kinit"),
        (BY_CACHE, Trouble(1 << 20, 11), "has only expired tickets: type kinit"),
        (Kerberos("kafka", ""), Trouble(195), "the ticket cache that the environment names has no tickets"),
    ],
)
def test_each_trouble_is_one_line(login: Kerberos, trouble: Trouble, part: str) -> None:
    said = explain(trouble, login, "b1")
    assert part in said
    assert "\n" not in said


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(SaslError, match=r"not installed here: .* pip install 'sparkmirror\[kerberos\]'"):
        Context(BY_KEYTAB, "b1")


def test_a_keytab_that_is_not_there(tmp_path: Path) -> None:
    missing = Kerberos("kafka", "mirror@R", keytab=str(tmp_path / "no.keytab"))
    with pytest.raises(SaslError, match=r"no.keytab can't be read here: No such file .* at the same path"):
        check_keytab(missing)


class Played:
    """A KDC whose tickets live for so many seconds of the test's own clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.asked = 0
        self.dead = False
        self.life_s = 100
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(tickets, "_got", self.got)

    def got(self, _: Kerberos) -> Any:
        self.asked += 1
        if self.dead:
            raise SaslError(f"no KDC answers, {self.asked}")
        return SimpleNamespace(lifetime=self.life_s, number=self.asked)


def renewal_ended() -> None:
    for thread in threading.enumerate():
        if thread.name == RENEWAL:
            thread.join(10)


def test_tickets_are_kept_for_four_fifths_of_their_life(monkeypatch: pytest.MonkeyPatch) -> None:
    kdc = Played(monkeypatch)
    keeper = TicketKeeper(BY_KEYTAB)
    seen = []
    for _ in range(20):
        keeper.credentials()
        renewal_ended()
        seen.append(keeper.credentials().number)
        kdc.now += 10
    assert seen == [1] * 8 + [2] * 8 + [3] * 4


def test_nobody_waits_for_the_kdc_while_there_are_tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    kdc = Played(monkeypatch)
    keeper = TicketKeeper(BY_KEYTAB)
    keeper.credentials()
    kdc.now += 81
    answered = threading.Event()
    got = kdc.got

    def slow(login: Kerberos) -> Any:
        answered.wait(10)
        return got(login)

    monkeypatch.setattr(tickets, "_got", slow)
    for _ in range(5):
        assert keeper.credentials().number == 1
        kdc.now += 3
    assert [thread.name for thread in threading.enumerate()].count(RENEWAL) == 1
    answered.set()
    renewal_ended()
    assert keeper.credentials().number == 2


def test_old_tickets_are_used_while_the_kdc_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    kdc = Played(monkeypatch)
    keeper = TicketKeeper(BY_KEYTAB)
    kdc.life_s = 1000
    keeper.credentials()
    kdc.dead = True
    kdc.now += 800
    for _ in range(198):
        assert keeper.credentials().number == 1
        renewal_ended()
        kdc.now += 1
    assert 10 < kdc.asked < 60, "not by every sign-in"
    kdc.now += 2
    with pytest.raises(SaslError, match="no KDC answers"):
        keeper.credentials()
    kdc.dead = False
    kdc.now += 1
    assert keeper.credentials().number == kdc.asked


def test_who_waited_is_told_what_the_first_one_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A KDC that is dead takes ten seconds; ten connections must not wait for a hundred."""
    kdc = Played(monkeypatch)
    kdc.dead = True
    waiting = threading.Event()
    got = kdc.got

    def slow(login: Kerberos) -> Any:
        waiting.wait(10)
        kdc.now += 10
        return got(login)

    monkeypatch.setattr(tickets, "_got", slow)
    keeper = TicketKeeper(BY_KEYTAB)
    said: list[str] = []

    def ask() -> None:
        try:
            keeper.credentials()
        except SaslError as error:
            said.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    real = threading.Event()
    real.wait(0.3)  # all have asked
    waiting.set()
    for thread in threads:
        thread.join(10)
    assert said == ["no KDC answers, 1"] * 8
