"""Rows that change: whoever watches knows them as they are, soon, in messages of a bounded size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.look.page.changes import Changes, Delta, Row

tables = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.sampled_from("xy"), st.integers(0, 3)), max_size=6)
steps = st.lists(st.tuples(tables, st.booleans(), st.booleans()), max_size=12)


class Viewer:
    """What a browser does with what it is sent."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def take(self, delta: Delta) -> None:
        for gone in delta.gone:
            self.rows.pop(gone, None)
        self.patch(delta.rows)

    def patch(self, rows: list[list[object]]) -> None:
        for number, *row in rows:
            assert isinstance(number, int)
            self.rows[number] = tuple(row)

    def known(self) -> list[Row]:
        return sorted(self.rows.values(), key=repr)


@given(steps)
def test_everyone_knows_the_rows_once_nothing_waits(some: list[tuple[dict[str, Row], bool, bool]]) -> None:
    """Viewers come at any time, ask for the rows that they see, and all know the same in the end."""
    changes = Changes(most=2)
    viewers: list[Viewer] = []
    for rows, comes, asks in some:
        delta = changes.look(rows)
        for viewer in viewers:
            viewer.take(delta)
        if comes:
            viewers.append(Viewer())
            viewers[-1].take(changes.all())
        if asks and viewers:
            viewers[0].patch(changes.newest(list(viewers[0].rows)[:2]))
    rows = some[-1][0] if some else {}
    while True:
        delta = changes.look(rows)
        for viewer in viewers:
            viewer.take(delta)
        if not delta.rows:
            break
    assert not delta.waiting
    for viewer in viewers:
        assert viewer.known() == sorted(rows.values(), key=repr)


def test_states_are_sent_at_once_and_figures_in_turn() -> None:
    changes = Changes(most=10)
    changes.look({str(number): ("copying", 0) for number in range(100)})
    rows: dict[str, Row] = {str(number): ("copying", 1) for number in range(100)}
    rows["77"] = "parked", 1
    seen: set[object] = set()
    delta = changes.look(rows)
    assert delta.rows[0][1:] == ["parked", 1]
    assert (len(delta.rows), delta.waiting) == (10, 90)
    for turn in range(9):
        seen.update(row[0] for row in delta.rows)
        delta = changes.look({key: (row[0], turn + 2) for key, row in rows.items()})
    seen.update(row[0] for row in delta.rows)
    assert len(seen) == 100, "the longest wait goes first"


def test_nothing_is_sent_of_what_stays() -> None:
    changes = Changes()
    rows: dict[str, Row] = {"a": ("copying", 1)}
    assert len(changes.look(rows).rows) == 1
    assert changes.look(dict(rows)) == Delta([], [])
    assert changes.look({}) == Delta([], [0])


def test_what_one_viewer_asked_for_is_sent_to_all_though_it_is_as_it_was_sent() -> None:
    """Else the one who asked would keep a row that has gone back meanwhile."""
    changes, viewer = Changes(most=1), Viewer()
    changes.look({"a": ("copying", 1), "b": ("copying", 1)})
    viewer.take(changes.all())
    viewer.take(changes.look({"a": ("copying", 2), "b": ("copying", 2)}))
    viewer.patch(changes.newest([0, 1]))
    assert viewer.known() == [("copying", 2), ("copying", 2)]
    for _ in range(3):
        viewer.take(changes.look({"a": ("copying", 1), "b": ("copying", 1)}))
    assert viewer.known() == [("copying", 1), ("copying", 1)]
