#!/usr/bin/env python3
"""Read clicks of a topic or its copies, and count those that are missing, there twice or out of order.

python reader.py -t clicks -pfp consumer.properties --seen seen.json
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer

from clicks import client_settings


class Seen:
    """Numbers of the clicks that were read, also by earlier readers with the same file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        kept: dict[str, Any] = json.loads(file.read_text()) if file is not None and file.exists() else {}
        self.numbers = {number for first, last in kept.get("read", []) for number in range(first, last + 1)}
        self.twice: int = kept.get("twice", 0)
        self.out_of_order: int = kept.get("out_of_order", 0)
        self._last_of_user: dict[str, int] = kept.get("last_of_user", {})

    def see(self, user: str, number: int) -> None:
        """Take a click in."""
        if number in self.numbers:
            self.twice += 1
        elif number < self._last_of_user.get(user, 0):
            self.out_of_order += 1
        self.numbers.add(number)
        self._last_of_user[user] = max(number, self._last_of_user.get(user, 0))

    @property
    def last(self) -> int:
        """The highest number; 0 if nothing was read."""
        return max(self.numbers, default=0)

    @property
    def missing(self) -> int:
        """The count of lower numbers that were not read."""
        return self.last - len(self.numbers)

    def keep(self) -> None:
        """Write the file for the next reader."""
        if self._file is None:
            return
        ranges: list[list[int]] = []
        for number in sorted(self.numbers):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        told = {"read": ranges, "twice": self.twice, "out_of_order": self.out_of_order}
        self._file.write_text(json.dumps(told | {"last_of_user": self._last_of_user}))


def main() -> int:
    """Read, and print the counts; the exit code is 1 if a click is missing, there twice or out of order."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-t", "--topic", default="ExampleTopic")
    parser.add_argument("-pfp", "--properties", required=True, help="bootstrap.servers, and how to sign in")
    parser.add_argument("--seen", type=Path, help="a file that keeps what was read, for the reader after this one")
    parser.add_argument("--idle", type=float, help="end after so many seconds without a click; else: until stopped")
    told = parser.parse_args()
    given = client_settings(told.properties, KafkaConsumer.DEFAULT_CONFIG)
    settings = {"client_id": "clickstream-consumer", "group_id": "mm2TestConsumer1", "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(**{**settings, **given, "enable_auto_commit": False})
    consumer.subscribe(pattern=rf"^(.+\.)?{re.escape(told.topic)}$")  # at the target the copy may have a prefix
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    seen, count, delay_ms, heard = Seen(told.seen), 0, 0.0, time.monotonic()
    while not stopped.is_set() and (told.idle is None or time.monotonic() - heard < told.idle):
        polled = consumer.poll(timeout_ms=500)
        for record in (record for records in polled.values() for record in records):
            click = json.loads(record.value)
            seen.see(str(click["userid"]), click["globalseq"])
            delay_ms += max(0.0, time.time() * 1000 - click["eventtimestamp"])
            count += 1
        if polled or not consumer.assignment():
            heard = time.monotonic()
        if polled:
            seen.keep()  # before the commit: a reader that dies between the two counts clicks as read twice
            consumer.commit()
    for part in sorted(consumer.assignment()):
        print(f"{part.topic}-{part.partition}: offset {consumer.position(part)}")
    consumer.close()
    print(f"clicks read: {count}; last globalseq: {seen.last}; mean delay: {delay_ms / max(count, 1):.0f} ms")
    print(f"missing: {seen.missing}; twice: {seen.twice}; out of order: {seen.out_of_order}")
    return 1 if seen.missing or seen.twice or seen.out_of_order else 0


if __name__ == "__main__":
    raise SystemExit(main())
