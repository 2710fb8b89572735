"""A migration: its file, the two clusters, and the steps from start to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from sparkmirror.config import MirrorConfig
from sparkmirror.config.formats import model_of, read
from sparkmirror.errors import ConfigError
from sparkmirror.migrate import phase, switch_plan
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.change_plan import change_plan
from sparkmirror.migrate.checks import CheckResult, run_checks
from sparkmirror.migrate.checks.gather import gather
from sparkmirror.migrate.evidence import Evidence
from sparkmirror.migrate.executor import Executor, StepEvent, SwitchOutcome
from sparkmirror.migrate.file import MigrationFile, Set, read_file
from sparkmirror.migrate.hands import RealHands
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.pair import Pair, flows_of
from sparkmirror.migrate.phase import Blocker, SetVerdict
from sparkmirror.migrate.planned_changes import PlannedChanges
from sparkmirror.migrate.rehearsal import RECORDS, Rehearsal, rehearse
from sparkmirror.migrate.switch_plan import SwitchGoal
from sparkmirror.migrate.verifications import VerifiedFlow
from sparkmirror.migrate.writers import ClusterWriters, DryWriters, Writing


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPlan:
    """The actions left until a set is at its goal."""

    migration: Migration
    set: Set
    goal: SwitchGoal
    seen: Observation
    actions: tuple[Action, ...]

    @property
    def words(self) -> list[str]:
        """The actions to do, a line for each."""
        return [action.words(self.seen) for action in self.actions]

    def run(self, on_step: Callable[[StepEvent], None] = lambda _: None) -> SwitchOutcome:
        """Carry the plan out, looking again after each action."""
        return self.migration.switch(self.set, self.goal, on_step)

    def dry_run(self, say: Callable[[str], None]) -> None:
        """Say the writes that the plan would make if all ends stood still now.

        Later actions depend on the results of earlier actions. Blockers come first: with any a switch doesn't begin.
        """
        for blocker in switch_plan.blockers(self.migration.file, self.seen, self.set, self.goal):
            say(f"can't begin: {blocker}")
        hands = self.migration.hands(DryWriters(self.migration.pair, say))
        seen = _at_rest(self.seen)
        for action in self.actions:
            hands.act(action, seen)


def _at_rest(seen: Observation) -> Observation:
    clusters = {
        side: replace(there, topics={name: replace(topic, steady=True) for name, topic in there.topics.items()})
        for side, there in seen.clusters.items()
    }
    return replace(seen, clusters=clusters)


class Migration:
    """A migration; a context manager, for a single thread.

    with Migration.load("migration.yaml") as migration:
        for plan in migration.plan(SwitchGoal(Who.CONSUMERS, Side.TARGET)):
            print(*plan.words, sep="\\n")
    """

    def __init__(self, file: MigrationFile, pair: Pair, mirror: MirrorConfig) -> None:
        self.file = file
        self.pair = pair
        self.mirror = mirror
        self._looking = self.hands(DryWriters(pair, lambda _: None))

    @classmethod
    def load(cls, path: str | Path, secrets: str | None = None) -> Self:
        """Read a migration's file and the mirror's; no cluster is asked.

        Raises `ConfigError`.
        """
        file = read_file(path)
        config, _ = model_of(read([file.mirror], secrets))
        return cls(file, Pair(flows_of(file, config)), config)

    def hands(self, writing: Writing) -> RealHands:
        """Return hands that look at the clusters, and act through `writing`."""
        return RealHands(self.file, self.pair, writing)

    def observe(self) -> Observation:
        """Look at both clusters. Raises `ClusterUnreachable` and other `ConnectionError`s."""
        return self._looking.look()

    def verdicts(self, seen: Observation) -> list[SetVerdict]:
        """Return each set's phase, and the blockers of the set's next switch."""
        return [phase.verdict(seen, self.file, moving) for moving in self.file.sets]

    def check(self, name: str | None = None) -> list[CheckResult]:
        """Check a set's next switch, or all sets'.

        Once all sets are complete, no switch is left to check. Makes and deletes a scratch topic at each cluster that a
        flow copies to (lint's append check). Raises `ConfigError` if there is no such set, `ClusterUnreachable` and
        other `ConnectionError`s.
        """
        sets = self.file.chosen(name)
        return list(run_checks(gather(self.file, sets, self.pair, self.mirror, self.observe)))

    def note_verified(self, verified: VerifiedFlow) -> None:
        """Write a flow's verification into the evidence, for `check`.

        Raises `ClusterUnreachable` and other `ConnectionError`s.
        """
        self._evidence().write(verified.line(self.file))

    def changes(self) -> PlannedChanges:
        """Compare the clusters: changes at the target, and work for people.

        Nothing is changed. Raises `ClusterUnreachable` and other `ConnectionError`s.
        """
        return change_plan(self.file, self.pair.flows[Side.SOURCE])

    def rehearse(
        self, name: str | None = None, groups: Sequence[str] = (), records: int = RECORDS, to: Side = Side.TARGET
    ) -> Rehearsal:
        """Compare the next records of groups on both sides.

        Takes the given groups, or all groups in a set, or in all sets. No cluster is changed. Raises
        `ConfigError` if there is no such set or no flow to `to`, `ClusterUnreachable` and other `ConnectionError`s.
        """
        flow = self.pair.flows.get(to.other)
        if flow is None:
            raise ConfigError("there is no flow back", origin=self.file.mirror)
        known = [group for moving in self.file.chosen(name) for group in moving.groups]
        if strangers := sorted(set(groups) - set(known)):
            raise ConfigError(f"no set has it; there are {', '.join(known)}", origin="--group", key=strangers[0])
        return rehearse(flow, groups or known, records, patience_s=self.file.policies.drain)

    def plan(self, goal: SwitchGoal, name: str | None = None) -> list[SwitchPlan]:
        """Plan a switch for a set, or for all sets.

        Raises `ConfigError` if there is no such set.
        """
        seen = self.observe()
        return [
            SwitchPlan(
                migration=self,
                set=moving,
                goal=goal,
                seen=seen,
                actions=switch_plan.plan(self.file, seen, moving, goal),
            )
            for moving in self.file.chosen(name)
        ]

    def switch(self, moving: Set, goal: SwitchGoal, on_step: Callable[[StepEvent], None]) -> SwitchOutcome:
        """Bring a set to its goal."""
        return Executor(self.file, self.hands(self.writers()), on_step).run(moving, goal)

    def complete(self, names: Sequence[Set]) -> list[Blocker]:
        """Give up the way back of sets that have moved.

        Return the blockers; if there are any, nothing is written.
        """
        seen = self.observe()
        blockers = [blocker for moving in names for blocker in phase.complete_blockers(seen, moving)]
        if not blockers:
            for moving in names:
                for topic in moving.topics:
                    self.pair.words[Side.SOURCE].close(topic)
                self.writers().note({"set": moving.name, "what": "completed"})
        return blockers

    def writers(self) -> ClusterWriters:
        """Return the writers for the clusters."""
        return ClusterWriters(self.pair, self._evidence())

    def _evidence(self) -> Evidence:
        return Evidence(self.pair.clients[Side.TARGET], self.file.name)

    def close(self) -> None:
        """Close the connections."""
        self.pair.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
