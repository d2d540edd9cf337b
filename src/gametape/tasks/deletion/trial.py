"""Try one candidate: carve it out, run everything, and hold what is left against every gate.

The author's tree is both start and goal: a reference that restores it byte for byte has been run five times already,
by the baseline, so nothing about it is run again but what the agent will see differently.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from gametape.tasks.deletion.alone import Alone
from gametape.tasks.deletion.baseline import Baseline
from gametape.tasks.deletion.carving.carving import Tier, carve
from gametape.tasks.deletion.features import Candidate
from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.holding_out.splitting import Split, hopeless, split
from gametape.tasks.deletion.holding_out.trimming import trim
from gametape.tasks.deletion.holding_out.units import TestSuite, read_suite
from gametape.tasks.deletion.leaks.outside import OutsideIndex, outside_index
from gametape.tasks.deletion.leaks.scan import find_leaks
from gametape.tasks.deletion.mapping import Reached, source_functions
from gametape.tasks.deletion.project import Project
from gametape.tasks.deletion.running import SuiteRun, changed, run_suite, run_tests
from gametape.tasks.deletion.site import Site
from gametape.verify.interpreter import visible_roots
from gametape.verify.jobs import by_file
from gametape.verify.survey import Survey, Surveyor
from gametape.verify.tree import Tree

_MOST_DRAWS = 4
"""Splits to try before a candidate is given up."""
_SOME = 40
"""Tests of a trimmed file that are run again."""
_MOST_COPIES = 6
"""How often to look again for copies of copies."""


class Rejected(Exception):
    """A candidate that some gate does not let through. `reason` is a word for tables."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


@dataclass(frozen=True)
class Find:
    """A candidate that went through every gate, with all that a task is written from."""

    candidate: Candidate
    start: Tree
    """What the agent gets."""
    deleted: frozenset[Function]
    split: Split
    passing: tuple[str, ...]
    """Tests that pass before and after, and that the agent can see."""
    passing_unseen: tuple[str, ...]
    """The same for those that can be seen no more, because they go with what is held out."""
    messages: Mapping[str, str]
    """What was said about failing tests."""
    predicted: frozenset[str]
    """The tests that were expected to fail, before any had run."""


class Trial:
    """What all trials of one code base share. Safe to use from several threads, each with its own surveyor."""

    def __init__(
        self,
        project: Project,
        baseline: Baseline,
        reached: Reached,
        suite: TestSuite,
        outside: OutsideIndex,
        tier: Tier,
        seed: int = 0,
    ) -> None:
        self.project = project
        self.baseline = baseline
        self.reached = reached
        self._suite = suite
        self._outside = outside
        self._tier: Tier = tier
        self._seed = seed
        self._functions = source_functions(project)
        self._alone = Alone(project, baseline, reached, suite)

    @classmethod
    def of(cls, site: Site, baseline: Baseline, reached: Reached, tier: Tier, seed: int = 0) -> Self:
        """Read the suite, and look for copies in all that a sandbox shows beside the workspace."""
        project = site.project
        suite = read_suite(project.tree.under([*project.test_paths]).files, baseline.collected)
        sources = {path: project.tree.text(path) for path in {one.path for one in reached.tests}}
        roots, hidden = visible_roots(site.interpreter)
        outside = outside_index(roots, sources, hidden)
        return cls(project, baseline, reached, suite, outside, tier, seed)

    def attempt(self, candidate: Candidate, surveyor: Surveyor) -> Find:
        """Delete it, or say at which gate it failed."""
        own = self._worth_deleting(candidate, surveyor)
        members = self.without_leaks(own, candidate.seeds)
        copies = members - own
        while True:
            carved = self.carved(members)
            predicted = frozenset[str]().union(*(self.reached.tests.get(one, frozenset()) for one in members))
            run = run_suite(surveyor, self.baseline, changed(self.project.tree, carved), predicted)
            covers = self._covers(candidate, members, run, surveyor)
            lost = self._in_the_way(candidate, covers, run.failing())
            if not lost:
                self._refuse_if_one_is_enough(candidate, covers, surveyor)
                return self.settle(candidate, carved, members, run, covers, predicted, surveyor)
            _refuse_for(lost & {*candidate.seeds}, covers)
            if lost & copies:
                raise Rejected("leak", f"{min(lost & copies).name} is a copy that has to stay")
            members = members - lost

    def without_leaks(self, members: frozenset[Function], seeds: Collection[Function] = ()) -> frozenset[Function]:
        """The same with copies of their bodies among the sources, which would give them away.

        What can be read elsewhere all the same is left in place, unless it is one of the seeds, or all there is.
        """
        kept_in_place: set[Function] = set()
        for _ in range(_MOST_COPIES):
            texts = {one: self.project.tree.text(one.path) for one in members}
            found = find_leaks(texts, self._carved(members, "stub"), self._outside)
            if not found:
                return members
            copies = {one for leak in found if (one := self._deletable(leak.copy)) is not None} - kept_in_place
            if copies - members:
                members = members | copies
                continue
            if lost := [leak for leak in found if not seeds or leak.function in seeds]:
                told = "; ".join(f"{leak.function.name} stands in {leak.where}:{leak.line}" for leak in lost[:3])
                raise Rejected("leak", told)
            kept_in_place |= {leak.function for leak in found}
            members = members - kept_in_place
        raise Rejected("leak", "there is always another copy")

    def settle(
        self,
        candidate: Candidate,
        carved: Tree,
        deleted: frozenset[Function],
        run: SuiteRun,
        covers: Mapping[Function, frozenset[str]],
        predicted: frozenset[str],
        surveyor: Surveyor,
    ) -> Find:
        """The last gates: a part of the tests that can be hidden, and a view that shows just the others."""
        passing = [test for test in run.results if run.results[test] == "passed"]
        trouble = ""
        for number in range(_MOST_DRAWS):
            parted = split(
                self._suite.units,
                run.failing(),
                passing,
                covers,
                random.Random(f"{self._seed} {candidate.key} {number}"),
            )
            if parted is None:
                break
            trimmed = trim(self._suite, parted.cuts)
            trouble = self._misfit(parted, trimmed, surveyor)
            if not trouble:
                gone = {path for path, content in trimmed.items() if content is None}
                shown = Tree({path: content for path, content in trimmed.items() if content is not None})
                unseen = frozenset(parted.dropped)
                start = shown.over(carved.without(gone))
                return Find(
                    candidate=candidate,
                    start=start,
                    deleted=deleted,
                    split=parted,
                    passing=tuple(test for test in passing if test not in unseen),
                    passing_unseen=tuple(test for test in passing if test in unseen),
                    messages=run.messages,
                    predicted=predicted,
                )
        raise Rejected("no_held_out", trouble or "no part of the tests can be hidden so that both parts need all of it")

    def _deletable(self, copy: Function | None) -> Function | None:
        """The author's function for one of a carved tree, whose lines may have moved; None if it has to stay."""
        same = [one for one in self._functions if copy and (one.path, one.qualname) == (copy.path, copy.qualname)]
        return same[0] if len(same) == 1 and same[0] not in self.reached.protected else None

    def hopeless(self, covers: Mapping[Function, frozenset[str]]) -> frozenset[Function]:
        """Functions whose tests cannot be parted into some that are shown and some that are hidden."""
        return frozenset(hopeless(self._suite.units, covers))

    def carved(self, functions: Collection[Function]) -> Tree:
        """The author's tree without these functions."""
        return self._carved(functions, self._tier)

    def _carved(self, functions: Collection[Function], tier: Tier) -> Tree:
        return carve(self.project.tree, functions, tier, test_paths=self.project.test_paths).tree

    def _worth_deleting(self, candidate: Candidate, surveyor: Surveyor) -> frozenset[Function]:
        """The functions without which something fails, in a test that can be shown and in one that can be hidden."""
        by_map = {one: self.reached.tests[one] for one in candidate.functions if one in self.reached.tests}
        lost = self.hopeless(by_map)
        _refuse_for(lost & {*candidate.seeds}, by_map)
        hoped = frozenset(by_map.keys() - lost)
        if len(hoped) == 1:
            return hoped
        alone = {one: self._alone.some(one, surveyor) for one in sorted(hoped)}
        expected = self.baseline.in_order(frozenset[str]().union(*(by_map[one] for one in hoped)))
        for one in sorted(self._in_the_way(candidate, alone, expected)):
            alone[one] = self._alone.among(by_map[one], one, surveyor)
        lost = self._in_the_way(candidate, alone, expected)
        _refuse_for(lost & {*candidate.seeds}, alone)
        return hoped - lost

    def _in_the_way(
        self, candidate: Candidate, covers: Mapping[Function, frozenset[str]], failing: Sequence[str]
    ) -> frozenset[Function]:
        """The functions without which the failing tests can be parted so that both parts need all that is left.

        Seeds are kept as long as that is possible, and then what is easy to show.
        """
        lost = self.hopeless(covers)
        left = {one: tests for one, tests in covers.items() if one not in lost}
        if not left or self._can_be_parted(left, failing):
            return lost
        kept: dict[Function, frozenset[str]] = {}
        for one in sorted(left, key=lambda one: (one not in candidate.seeds, -len(left[one]), one)):
            if self._can_be_parted({**kept, one: left[one]}, failing):
                kept[one] = left[one]
        return frozenset(covers.keys() - kept.keys())

    def _can_be_parted(self, covers: Mapping[Function, frozenset[str]], failing: Sequence[str]) -> bool:
        return split(self._suite.units, failing, (), covers, random.Random(0)) is not None

    def _covers(
        self, candidate: Candidate, members: frozenset[Function], run: SuiteRun, surveyor: Surveyor
    ) -> dict[Function, frozenset[str]]:
        """For each function the failing tests that need it. Copies that no test reaches are shown by none."""
        failing = frozenset(run.failing())
        if not failing:
            raise Rejected("nothing_fails", "every test passes without it")
        reached = sorted(one for one in members if one in self.reached.tests)
        if len(reached) == 1 and self._tier == "stub":
            return dict.fromkeys(reached, failing)  # where it is removed, whole files fail that only import its name
        alone = {one: self._alone.some(one, surveyor) for one in reached}
        masked = frozenset[str]().union(*alone.values()) - failing
        if masked and len(candidate.seeds) > 1:
            raise Rejected("masked", f"{min(masked)} fails without a part of it, and passes without all of it")
        return {one: tests & failing for one, tests in alone.items()}

    def _misfit(self, parted: Split, trimmed: Mapping[str, bytes | None], surveyor: Surveyor) -> str:
        """What is wrong with the tests as the agent sees them, over the author's sources; nothing, if they hold.

        Every name is looked at. Of the tests that are to stay as they are, some are run.
        """
        hidden = {*parted.held_out, *parted.dropped}
        laid = {path: content for path, content in trimmed.items() if content is not None}
        files = {
            file: [test for test in ids if test not in hidden]
            for file, ids in by_file(self.baseline.tests).items()
            if trimmed.get(file, b"") is not None and (file in trimmed or hidden.intersection(ids))
        }
        some = {*parted.visible}.union(*(stay[:: max(1, len(stay) // _SOME)] for stay in files.values()))
        for group in self._groups(files):
            stay = [test for file in group for test in files[file]]
            run = tuple(test for test in stay if test in some)
            seconds = sum(map(self.baseline.seconds_for, group))
            step = Survey(tuple(group), run, laid, seconds=seconds, silence=self.baseline.silence)
            found = surveyor.run(step)
            collected = {*found.collected}
            if shown := sorted(hidden & collected):
                return f"{shown[0]} can still be seen"
            if lost := [test for test in stay if test not in collected]:
                return f"{lost[0]} cannot be seen any more"
            if failed := [test for test in run if found.result(test) != "passed"]:
                return f"{failed[0]} fails in what is left of its file"
        return ""

    def _groups(self, files: Collection[str]) -> list[list[str]]:
        """Files that can share a process, and the others one by one."""
        together = [file for file in files if file in self.baseline.together]
        return [*([together] if together else []), *([file] for file in files if file not in self.baseline.together)]

    def _refuse_if_one_is_enough(
        self, candidate: Candidate, covers: Mapping[Function, frozenset[str]], surveyor: Surveyor
    ) -> None:
        """With a seed back, something must still fail. For the other functions this follows from what was run: without
        the seed alone, and without all of them, the same tests fail."""
        for seed in candidate.seeds if len(covers) > 1 else ():
            rest = [one for one in covers if one != seed]
            shows = self.baseline.in_order(frozenset[str]().union(*(covers[one] for one in rest)))
            laid = changed(self.project.tree, self.carved(rest))
            first = run_tests(surveyor, self.baseline, laid, shows[:1])
            if not first.failing() and not run_tests(surveyor, self.baseline, laid, shows).failing():
                raise Rejected("one_is_enough", f"restoring {seed.name} alone mends everything")


def _refuse_for(seeds: Collection[Function], covers: Mapping[Function, frozenset[str]]) -> None:
    """A candidate stands and falls with its seeds."""
    for seed in sorted(seeds):
        if not covers[seed]:
            raise Rejected("nothing_fails", f"every test passes without {seed.name}")
        raise Rejected("no_held_out", f"{seed.name} is shown by {len(covers[seed])} tests that cannot be told apart")
