"""`sparkmirror demo --migration`: a shop moves there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkmirror.cli.logs import console
from sparkmirror.errors import CopyIncomplete
from sparkmirror.migrate.executor import Code, StepEvent
from sparkmirror.migrate.migration import Migration
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

if TYPE_CHECKING:
    from sparkmirror.demo.moving_shop import MovingShow

_PATIENCE_S = 60.0


class Story:
    """The migration, verb by verb; each is what the command line's verb does."""

    def __init__(self, show: MovingShow, records_per_s: float, live_s: float) -> None:
        self._show = show
        self._rate = records_per_s
        self._live_s = live_s

    def tell(self) -> bool:
        """Move consumers, then producers, then all back.

        Return True if the group has read each record once.
        """
        show = self._show
        show.reader.open(show.source.bootstrap_servers)
        show.open_shop(self._rate)
        show.watch(self._live_s)
        with Migration.load(show.migration_file) as moving:
            self._check(moving)
            self._say("The group billing is stopped at shop. Its positions move first; producers see nothing:")
            show.reader.close()
            self._switch(moving, "switch consumers", SwitchGoal(Who.CONSUMERS, Side.TARGET))
            show.reader.open(show.target.bootstrap_servers)
            show.watch(self._live_s)
            self._say("billing reads at backup now. The producers are stopped at shop, and follow:")
            show.close_shop()
            self._switch(moving, "switch producers", SwitchGoal(Who.PRODUCERS, Side.TARGET))
            show.move_shop(show.target.bootstrap_servers)
            show.open_shop(self._rate)
            show.watch(self._live_s)
            self._say("All is at backup, and what is written there is copied back to shop. So it can all go back:")
            show.close_shop()
            show.reader.close()
            self._switch(moving, "reverse", SwitchGoal(Who.ALL, Side.SOURCE))
            show.move_shop(show.source.bootstrap_servers)
            show.reader.open(show.source.bootstrap_servers)
            show.open_shop(self._rate)
            show.watch(self._live_s)
            show.close_shop()
        return self._is_exact()

    def _is_exact(self) -> bool:
        show = self._show
        ends = show.wait_until_equal()
        written = show.written[0]
        show.reader.wait_for(written, _PATIENCE_S)
        show.reader.close()
        wrong = show.reader_differs(ends)
        read = show.reader.seen.records
        if wrong:
            self._say(f"\n[bold red]billing has not read each record once, in order: {', '.join(wrong)}[/bold red]")
        else:
            self._say(
                f"\nbilling has read {read:,} of {written:,} records on its way there and back: each once, in order."
            )
        return not wrong

    def _check(self, moving: Migration) -> None:
        self._command("check")
        for result in moving.check():
            if result.remedy:
                self._say(f"  {result.verdict:<8}{result.id}: {result.words}")

    def _switch(self, moving: Migration, verb: str, goal: SwitchGoal) -> None:
        self._command(verb)
        for plan in moving.plan(goal):
            outcome = plan.run(self._event)
            self._say(f"  {outcome.words} in {outcome.seconds:.1f} s")
            if outcome.code is not Code.DONE:
                raise CopyIncomplete(outcome.words)

    def _event(self, event: StepEvent) -> None:
        if event.kind == "done":
            self._say(f"  {event.number}  {event.words}  [dim]({event.seconds:.2f} s)[/dim]")

    def _command(self, verb: str) -> None:
        self._say(f"\n[bold]sparkmirror migration {verb} {self._show.migration_file}[/bold]")

    def _say(self, line: str) -> None:
        console.print(line, highlight=False)
