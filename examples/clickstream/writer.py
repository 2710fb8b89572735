#!/usr/bin/env python3
"""Write numbered clicks of a shop's visitors, as JSON, with the user as key.

python writer.py -t clicks -pfp producer.properties -nou 100 -nd
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import threading
import time
from itertools import count
from pathlib import Path

from kafka import KafkaProducer
from kafka.errors import KafkaError

from clicks import FIRST_USER, client_settings, session

STATUS_S = 2.0
"""Seconds between two lines on the progress."""


class Writer:
    """Threads that write sessions, and number their clicks through all threads."""

    def __init__(self, producer: KafkaProducer, topic: str, users: int | None, first: int, hurry: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._users = iter(range(FIRST_USER, FIRST_USER + users)) if users is not None else count(FIRST_USER)
        self._numbers = count(first)
        self._hurry = hurry
        self._lock = threading.Lock()
        self.stopped = threading.Event()
        self.last = first - 1
        self.refused: list[BaseException] = []

    def write(self) -> None:
        """Write sessions of one user after the other, until there are no more, one fails, or the writer is stopped."""
        try:
            self._write()
        except KafkaError as error:
            self.refused.append(error)
            self.stopped.set()

    def _write(self) -> None:
        chance, previous = random.Random(), 0  # noqa: S311
        while not self.stopped.is_set():
            with self._lock:
                user = next(self._users, None)
            if user is None:
                return
            for click in session(user, chance):
                with self._lock:  # so that a user's numbers rise in the user's partition
                    number = self.last = next(self._numbers)
                    click |= {"eventtimestamp": time.time_ns() // 1_000_000}
                    click |= {"globalseq": number, "prevglobalseq": previous}
                    self._producer.send(
                        self._topic, key=str(user).encode(), value=json.dumps(click).encode()
                    ).add_errback(self.refused.append)
                previous = number
            if not self._hurry:
                self.stopped.wait(chance.uniform(0.05, 0.55))


def main() -> int:
    """Write, and print the last number; the exit code is 1 if a click was not written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-t", "--topic", default="ExampleTopic")
    parser.add_argument("-pfp", "--properties", required=True, help="bootstrap.servers, and how to sign in")
    parser.add_argument("-nou", "--users", type=int, help="sessions to write; without it: until stopped")
    parser.add_argument("-nt", "--threads", type=int, default=2)
    parser.add_argument("-nd", "--no-delay", action="store_true", help="no pause between sessions")
    parser.add_argument("--bookmark", type=Path, help="a file that keeps the last number for the next run")
    told = parser.parse_args()
    given = client_settings(told.properties, KafkaProducer.DEFAULT_CONFIG)
    producer = KafkaProducer(**{"client_id": "clickstream-producer", "acks": "all", **given})
    kept = told.bookmark is not None and told.bookmark.exists()
    first = int(told.bookmark.read_text()) + 1 if kept else 1
    writer = Writer(producer, told.topic, told.users, first, told.no_delay)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: writer.stopped.set())
    threads = [threading.Thread(target=writer.write) for _ in range(told.threads)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(STATUS_S)
            written, took = writer.last - first + 1, time.monotonic() - began
            print(f"{written:,} clicks in {took:,.1f} s, {written / took:,.0f}/s", flush=True)
    producer.flush()
    producer.close()
    if told.bookmark is not None:
        told.bookmark.write_text(str(writer.last))
    for error in writer.refused[:1]:
        print(f"{len(writer.refused):,} clicks were not written: {error}")
    print(f"clicks written: {writer.last - first + 1 - len(writer.refused)}; last globalseq: {writer.last}")
    return 1 if writer.refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
