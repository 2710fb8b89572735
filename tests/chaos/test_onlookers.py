"""What a scraper of metrics and a browser notice."""

from __future__ import annotations

from chaos.onlookers import Onlookers
from chaos.truth import Truth


def scrape(records: float, started: float = 1_000.0, flow: str = "A->B") -> str:
    return (
        "# TYPE sparkmirror_start_timestamp_seconds gauge\n"
        f"sparkmirror_start_timestamp_seconds {started}\n"
        "# TYPE sparkmirror_records_total counter\n"
        f'sparkmirror_records_total{{flow="{flow}"}} {records}\n'
        "# TYPE sparkmirror_lag gauge\n"
        f"sparkmirror_lag {1_000 - records}\n"
    )


def onlookers() -> Onlookers:
    return Onlookers(lambda: 9, Truth())


def test_a_counter_that_falls_is_noted() -> None:
    looking = onlookers()
    for records in (10, 20, 20, 19):
        looking.note_scrape(scrape(records), 0.0)
    (fall,) = looking.seen.falls
    assert fall.endswith('sparkmirror_records_total{flow="A->B"} fell from 20 to 19')
    assert looking.seen.scrapes == 4
    assert not looking.seen.good


def test_another_process_counts_from_the_start_and_a_flow_may_come_and_go() -> None:
    looking = onlookers()
    looking.note_scrape(scrape(10), 0.0)
    looking.note_scrape(scrape(3, started=2_000.0), 0.0)
    looking.note_scrape(scrape(1, started=2_000.0, flow="C->B"), 0.0)
    looking.note_event('{"flows": []}')
    assert looking.seen.good


def test_a_counter_that_was_missing_meanwhile_may_not_have_fallen() -> None:
    looking = onlookers()
    looking.note_scrape(scrape(10), 0.0)
    looking.note_scrape(scrape(1, flow="C->B"), 0.0)
    looking.note_scrape(scrape(9), 0.0)
    (fall,) = looking.seen.falls
    assert fall.endswith('sparkmirror_records_total{flow="A->B"} fell from 10 to 9')


def test_few_answers_are_not_enough() -> None:
    looking = onlookers()
    looking.note_scrape(scrape(10), 0.0)
    looking.note_event("{}")
    looking.seen.asked = 3
    assert looking.seen.good
    looking.seen.asked = 4
    assert not looking.seen.good


def test_what_cannot_be_read_is_noted() -> None:
    looking = onlookers()
    looking.note_scrape("this { is no metric", 0.0)
    looking.note_scrape("# TYPE x gauge\nx 1\n", 0.0)
    looking.note_event('{"cut off')
    assert len(looking.seen.unreadable) == 3
    assert looking.seen.scrapes == looking.seen.updates == 0


def test_notes_are_few() -> None:
    looking = onlookers()
    for records in range(100, 0, -1):
        looking.note_scrape(scrape(records), 0.0)
    assert len(looking.seen.falls) == 10
