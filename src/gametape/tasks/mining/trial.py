"""Try one candidate: carve it out, run everything, and hold what is left against every gate.

The author's tree is both start and goal: a reference that restores it byte for byte has been run five times already,
by the baseline, so nothing about it is run again but what the agent will see differently.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.baseline import SuiteBaseline
from gametape.tasks.mining.candidates import Candidate
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.held_out.removable_tests import TestSuite, read_test_suite
from gametape.tasks.mining.held_out.split import HeldOutSplit, split_held_out, unsplittable
from gametape.tasks.mining.held_out.trimmed_suite import trim_suite
from gametape.tasks.mining.leaks.outside_workspace import OutsideIndex, build_outside_index
from gametape.tasks.mining.leaks.scan import find_leaks
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.removal.deletion import Tier, delete_functions
from gametape.tasks.mining.single_deletion import SingleDeletion
from gametape.tasks.mining.suite_analysis import CoverageMap, source_functions
from gametape.tasks.mining.suite_run import SuiteOutcome, changed_files, run_suite, run_tests
from gametape.tasks.project import Project
from gametape.verify.interpreter import visible_roots
from gametape.verify.jobs import group_by_file
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner

_MOST_DRAWS = 4
"""Splits to try before a candidate is given up."""
_SOME = 40
"""Tests of a trimmed file that are run again."""
_MOST_COPIES = 6
"""How often to look again for copies of copies."""


class CandidateRejected(Exception):
    """A candidate that some gate does not let through. `reason` is a word for tables."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


@dataclass(frozen=True)
class ValidCandidate:
    """A candidate that went through every gate, with all that a task is written from."""

    candidate: Candidate
    start: SourceTree
    """What the agent gets."""
    deleted: frozenset[Function]
    split: HeldOutSplit
    pass_to_pass: tuple[str, ...]
    """Tests that pass before and after, and that the agent can see."""
    held_out_passing: tuple[str, ...]
    """The same for those that can be seen no more, because they go with what is held out."""
    failure_messages: Mapping[str, str]
    """What was said about failing tests."""
    predicted_failing: frozenset[str]
    """The tests that were expected to fail, before any had run."""


class CandidateTrial:
    """What all trials of one code base share. Safe to use from several threads, each with its own surveyor."""

    def __init__(
        self,
        project: Project,
        baseline: SuiteBaseline,
        coverage_map: CoverageMap,
        suite: TestSuite,
        outside: OutsideIndex,
        tier: Tier,
        seed: int = 0,
    ) -> None:
        self.project = project
        self.baseline = baseline
        self.coverage_map = coverage_map
        self._suite = suite
        self._outside = outside
        self._tier: Tier = tier
        self._seed = seed
        self._functions = source_functions(project)
        self._single_deletion = SingleDeletion(project, baseline, coverage_map, suite)

    @classmethod
    def for_project(
        cls, runner: ProjectRunner, baseline: SuiteBaseline, coverage_map: CoverageMap, tier: Tier, seed: int = 0
    ) -> Self:
        """Read the suite, and look for copies in all that a sandbox shows beside the workspace."""
        project = runner.project
        suite = read_test_suite(project.tree.under([*project.test_paths]).files, baseline.collected)
        sources = {path: project.tree.text(path) for path in {one.path for one in coverage_map.tests}}
        roots, hidden = visible_roots(runner.interpreter)
        outside = build_outside_index(roots, sources, hidden)
        return cls(project, baseline, coverage_map, suite, outside, tier, seed)

    def attempt(self, candidate: Candidate, surveyor: WarmTestRunner) -> ValidCandidate:
        """Delete it, or say at which gate it failed."""
        own = self._worth_deleting(candidate, surveyor)
        members = self.include_copies(own, candidate.seeds)
        copies = members - own
        while True:
            carved = self.without_functions(members)
            predicted = frozenset[str]().union(*(self.coverage_map.tests.get(one, frozenset()) for one in members))
            run = run_suite(surveyor, self.baseline, changed_files(self.project.tree, carved), predicted)
            covers = self._covers(candidate, members, run, surveyor)
            lost = self._blocking_functions(candidate, covers, run.failing())
            if not lost:
                self._refuse_if_one_is_enough(candidate, covers, surveyor)
                return self.hold_out_tests(candidate, carved, members, run, covers, predicted, surveyor)
            _refuse_for(lost & {*candidate.seeds}, covers)
            if lost & copies:
                raise CandidateRejected("leak", f"{min(lost & copies).name} is a copy that has to stay")
            members = members - lost

    def include_copies(self, members: frozenset[Function], seeds: Collection[Function] = ()) -> frozenset[Function]:
        """The same with copies of their bodies among the sources, which would give them away.

        What can be read elsewhere all the same is left in place, unless it is one of the seeds, or all there is.
        """
        kept_in_place: set[Function] = set()
        for _ in range(_MOST_COPIES):
            texts = {one: self.project.tree.text(one.path) for one in members}
            found = find_leaks(texts, self._without_functions(members, "stub"), self._outside)
            if not found:
                return members
            copies = {one for leak in found if (one := self._deletable(leak.copy)) is not None} - kept_in_place
            if copies - members:
                members = members | copies
                continue
            if lost := [leak for leak in found if not seeds or leak.function in seeds]:
                told = "; ".join(f"{leak.function.name} stands in {leak.where}:{leak.line}" for leak in lost[:3])
                raise CandidateRejected("leak", told)
            kept_in_place |= {leak.function for leak in found}
            members = members - kept_in_place
        raise CandidateRejected("leak", "there is always another copy")

    def hold_out_tests(
        self,
        candidate: Candidate,
        start_tree: SourceTree,
        deleted: frozenset[Function],
        run: SuiteOutcome,
        covers: Mapping[Function, frozenset[str]],
        predicted: frozenset[str],
        surveyor: WarmTestRunner,
    ) -> ValidCandidate:
        """The last gates: a part of the tests that can be hidden, and a view that shows just the others."""
        passing = [test for test in run.results if run.results[test] == "passed"]
        trouble = ""
        for number in range(_MOST_DRAWS):
            parted = split_held_out(
                self._suite.units,
                run.failing(),
                passing,
                covers,
                random.Random(f"{self._seed} {candidate.key} {number}"),
            )
            if parted is None:
                break
            trimmed = trim_suite(self._suite, parted.cuts)
            trouble = self._visible_suite_problem(parted, trimmed, surveyor)
            if not trouble:
                gone = {path for path, content in trimmed.items() if content is None}
                shown = SourceTree({path: content for path, content in trimmed.items() if content is not None})
                unseen = frozenset(parted.also_hidden)
                start = shown.overlaid_on(start_tree.without(gone))
                return ValidCandidate(
                    candidate=candidate,
                    start=start,
                    deleted=deleted,
                    split=parted,
                    pass_to_pass=tuple(test for test in passing if test not in unseen),
                    held_out_passing=tuple(test for test in passing if test in unseen),
                    failure_messages=run.messages,
                    predicted_failing=predicted,
                )
        raise CandidateRejected(
            "no_held_out", trouble or "no part of the tests can be hidden so that both parts need all of it"
        )

    def _deletable(self, copy: Function | None) -> Function | None:
        """The author's function for one of a carved tree, whose lines may have moved; None if it has to stay."""
        same = [one for one in self._functions if copy and (one.path, one.qualname) == (copy.path, copy.qualname)]
        return same[0] if len(same) == 1 and same[0] not in self.coverage_map.protected else None

    def unsplittable(self, covers: Mapping[Function, frozenset[str]]) -> frozenset[Function]:
        """Functions whose tests cannot be parted into some that are shown and some that are hidden."""
        return frozenset(unsplittable(self._suite.units, covers))

    def without_functions(self, functions: Collection[Function]) -> SourceTree:
        """The author's tree without these functions."""
        return self._without_functions(functions, self._tier)

    def _without_functions(self, functions: Collection[Function], tier: Tier) -> SourceTree:
        return delete_functions(self.project.tree, functions, tier, test_paths=self.project.test_paths).tree

    def _worth_deleting(self, candidate: Candidate, surveyor: WarmTestRunner) -> frozenset[Function]:
        """The functions without which something fails, in a test that can be shown and in one that can be hidden."""
        by_map = {one: self.coverage_map.tests[one] for one in candidate.functions if one in self.coverage_map.tests}
        lost = self.unsplittable(by_map)
        _refuse_for(lost & {*candidate.seeds}, by_map)
        hoped = frozenset(by_map.keys() - lost)
        if len(hoped) == 1:
            return hoped
        alone = {one: self._single_deletion.some_failing_tests(one, surveyor) for one in sorted(hoped)}
        expected = self.baseline.in_order(frozenset[str]().union(*(by_map[one] for one in hoped)))
        for one in sorted(self._blocking_functions(candidate, alone, expected)):
            alone[one] = self._single_deletion.failing_among(by_map[one], one, surveyor)
        lost = self._blocking_functions(candidate, alone, expected)
        _refuse_for(lost & {*candidate.seeds}, alone)
        return hoped - lost

    def _blocking_functions(
        self, candidate: Candidate, covers: Mapping[Function, frozenset[str]], failing: Sequence[str]
    ) -> frozenset[Function]:
        """The functions without which the failing tests can be parted so that both parts need all that is left.

        Seeds are kept as long as that is possible, and then what is easy to show.
        """
        lost = self.unsplittable(covers)
        left = {one: tests for one, tests in covers.items() if one not in lost}
        if not left or self._can_be_split(left, failing):
            return lost
        kept: dict[Function, frozenset[str]] = {}
        for one in sorted(left, key=lambda one: (one not in candidate.seeds, -len(left[one]), one)):
            if self._can_be_split({**kept, one: left[one]}, failing):
                kept[one] = left[one]
        return frozenset(covers.keys() - kept.keys())

    def _can_be_split(self, covers: Mapping[Function, frozenset[str]], failing: Sequence[str]) -> bool:
        return split_held_out(self._suite.units, failing, (), covers, random.Random(0)) is not None

    def _covers(
        self, candidate: Candidate, members: frozenset[Function], run: SuiteOutcome, surveyor: WarmTestRunner
    ) -> dict[Function, frozenset[str]]:
        """For each function the failing tests that need it. Copies that no test reaches are shown by none."""
        failing = frozenset(run.failing())
        if not failing:
            raise CandidateRejected("nothing_fails", "every test passes without it")
        reached = sorted(one for one in members if one in self.coverage_map.tests)
        if len(reached) == 1 and self._tier == "stub":
            return dict.fromkeys(reached, failing)  # where it is removed, whole files fail that only import its name
        alone = {one: self._single_deletion.some_failing_tests(one, surveyor) for one in reached}
        masked = frozenset[str]().union(*alone.values()) - failing
        if masked and len(candidate.seeds) > 1:
            raise CandidateRejected("masked", f"{min(masked)} fails without a part of it, and passes without all of it")
        return {one: tests & failing for one, tests in alone.items()}

    def _visible_suite_problem(
        self, parted: HeldOutSplit, trimmed: Mapping[str, bytes | None], surveyor: WarmTestRunner
    ) -> str:
        """What is wrong with the tests as the agent sees them, over the author's sources; nothing, if they hold.

        Every name is looked at. Of the tests that are to stay as they are, some are run.
        """
        hidden = {*parted.held_out, *parted.also_hidden}
        laid = {path: content for path, content in trimmed.items() if content is not None}
        files = {
            file: [test for test in ids if test not in hidden]
            for file, ids in group_by_file(self.baseline.tests).items()
            if trimmed.get(file, b"") is not None and (file in trimmed or hidden.intersection(ids))
        }
        some = {*parted.visible}.union(*(stay[:: max(1, len(stay) // _SOME)] for stay in files.values()))
        for group in self._groups(files):
            stay = [test for file in group for test in files[file]]
            run = tuple(test for test in stay if test in some)
            seconds = sum(map(self.baseline.seconds_for, group))
            step = PytestRequest(tuple(group), run, laid, seconds=seconds, silence=self.baseline.silence)
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
        self, candidate: Candidate, covers: Mapping[Function, frozenset[str]], surveyor: WarmTestRunner
    ) -> None:
        """With a seed back, something must still fail. For the other functions this follows from what was run: without
        the seed alone, and without all of them, the same tests fail."""
        for seed in candidate.seeds if len(covers) > 1 else ():
            rest = [one for one in covers if one != seed]
            shows = self.baseline.in_order(frozenset[str]().union(*(covers[one] for one in rest)))
            laid = changed_files(self.project.tree, self.without_functions(rest))
            first = run_tests(surveyor, self.baseline, laid, shows[:1])
            if not first.failing() and not run_tests(surveyor, self.baseline, laid, shows).failing():
                raise CandidateRejected("one_is_enough", f"restoring {seed.name} alone mends everything")


def _refuse_for(seeds: Collection[Function], covers: Mapping[Function, frozenset[str]]) -> None:
    """A candidate stands and falls with its seeds."""
    for seed in sorted(seeds):
        if not covers[seed]:
            raise CandidateRejected("nothing_fails", f"every test passes without {seed.name}")
        raise CandidateRejected(
            "no_held_out", f"{seed.name} is shown by {len(covers[seed])} tests that cannot be told apart"
        )
