"""Each planted fault in a real browser: the sentence, its colour, the finding with its remedy, and the cut-over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from chromium import Seen, chromium
from page_scenes import Stage, staged
from playwright.sync_api import Page, expect
from tests.support.planted import FAULTS
from tests.support.planted_flows import Fault
from tests.support.snapshot_samples import flow
from tests.support.told import AT_ONCE, TOLD

from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.full

IN_TIME_MS = 5_000


SHOWN = [fault for fault in FAULTS if fault.words in AT_ONCE]


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


@pytest.fixture(scope="module")
def page(stage: Stage) -> Iterator[Page]:
    with chromium() as browser, staged(stage) as url, closing(Seen(browser, url)) as seen:
        page = seen.open()
        page.get_by_role("tab", name="Cut over").click()
        yield page
        assert not seen.complaints


def test_most_are_shown() -> None:
    assert len(SHOWN) > 0.8 * len(FAULTS)


@pytest.mark.parametrize("fault", SHOWN, ids=[fault.words for fault in SHOWN])
def test_the_page_tells_it(fault: Fault, stage: Stage, page: Page) -> None:
    """Whatever it told before."""
    told = TOLD[fault.words]
    stage.show(flow(topics=()))
    expect(page.locator(f".finding-list li[data-rule='{fault.rule}']")).to_have_count(0, timeout=IN_TIME_MS)
    stage.shown = Snapshot(fault.process, fault.now.at_ms, (fault.now,))
    finding = page.locator(f".finding-list li[data-rule='{fault.rule}']").first
    expect(finding).to_be_visible(timeout=IN_TIME_MS)
    action = next(one.action for one in diagnose(fault.snapshots[0]) if one.rule == fault.rule)
    expect(finding).to_contain_text(action.partition("`")[0].partition("(")[0].strip())
    shown = page.locator(".flow").first
    expect(shown).to_have_attribute("data-tone", told.tone.value, timeout=IN_TIME_MS)
    words = f"{shown.locator('.sentence').inner_text()} {shown.locator('.then > span').inner_text()}"
    assert told.says in words
    expect(page.locator("#panel")).to_contain_text(told.cut_over.value.capitalize())
