"""Try one candidate: delete its functions, run the suite, and apply every gate.

The reference restores the author's tree byte for byte. The baseline has run that tree five times, so only the trimmed
test files, which the agent sees instead of the author's, are run over it again.
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
"""Splits to try before a candidate is rejected."""
_SOME = 40
"""Tests of a trimmed file that are run again."""
_MOST_COPIES = 6
"""How often to search again for copies of copies."""


class CandidateRejected(Exception):
    """A candidate failed at a gate. `reason` is a word for tables."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


@dataclass(frozen=True)
class ValidCandidate:
    """A candidate that passed every gate, with all that a task is built from."""

    candidate: Candidate
    start: SourceTree
    """The agent's starting tree."""
    deleted: frozenset[Function]
    split: HeldOutSplit
    pass_to_pass: tuple[str, ...]
    """Visible tests that pass at the start."""
    held_out_passing: tuple[str, ...]
    """Tests that pass at the start and are hidden together with held-out ones."""
    failure_messages: Mapping[str, str]
    """By test: its failure message."""
    predicted_failing: frozenset[str]
    """The tests that the coverage map predicted to fail."""


class CandidateTrial:
    """Tries candidates of one project. Safe to use from several threads, each with its own test runner."""

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
        """Read the suite, and index what a sandbox shows outside the workspace, to find copies there."""
        project = runner.project
        suite = read_test_suite(project.tree.under([*project.test_paths]).files, baseline.collected)
        sources = {path: project.tree.text(path) for path in {function.path for function in coverage_map.tests}}
        roots, hidden = visible_roots(runner.interpreter)
        outside = build_outside_index(roots, sources, hidden)
        return cls(project, baseline, coverage_map, suite, outside, tier, seed)

    def attempt(self, candidate: Candidate, test_runner: WarmTestRunner) -> ValidCandidate:
        """Delete the candidate and apply every gate. Raises `CandidateRejected` at the first that it fails."""
        own = self._worth_deleting(candidate, test_runner)
        members = self.include_copies(own, candidate.seeds)
        copies = members - own
        while True:
            reduced = self.without_functions(members)
            predicted = self.coverage_map.tests_of(members)
            outcome = run_suite(test_runner, self.baseline, changed_files(self.project.tree, reduced), predicted)
            covers = self._covers(candidate, members, outcome, test_runner)
            blocking = self._blocking_functions(candidate, covers, outcome.failing())
            if not blocking:
                self._refuse_if_one_is_enough(candidate, covers, test_runner)
                return self.hold_out_tests(candidate, reduced, members, outcome, covers, predicted, test_runner)
            _refuse_for(blocking & {*candidate.seeds}, covers)
            if blocking & copies:
                raise CandidateRejected("leak", f"{min(blocking & copies).name} is a copy that has to stay")
            members = members - blocking

    def include_copies(self, members: frozenset[Function], seeds: Collection[Function] = ()) -> frozenset[Function]:
        """These functions and all functions of the sources with the same bodies, which would leak them.

        A function that can still be read elsewhere is not deleted. If it is a seed function, or no seed functions are
        given, the candidate is rejected.
        """
        kept_in_place: set[Function] = set()
        for _ in range(_MOST_COPIES):
            texts = {other: self.project.tree.text(other.path) for other in members}
            leaks = find_leaks(texts, self._without_functions(members, "stub"), self._outside)
            if not leaks:
                return members
            copies = {other for leak in leaks if (other := self._deletable(leak.copy)) is not None} - kept_in_place
            if copies - members:
                members = members | copies
                continue
            if fatal := [leak for leak in leaks if not seeds or leak.function in seeds]:
                listed = "; ".join(f"{leak.function.name} stands in {leak.where}:{leak.line}" for leak in fatal[:3])
                raise CandidateRejected("leak", listed)
            kept_in_place |= {leak.function for leak in leaks}
            members = members - kept_in_place
        raise CandidateRejected("leak", "there is always another copy")

    def hold_out_tests(
        self,
        candidate: Candidate,
        start_tree: SourceTree,
        deleted: frozenset[Function],
        outcome: SuiteOutcome,
        covers: Mapping[Function, frozenset[str]],
        predicted: frozenset[str],
        test_runner: WarmTestRunner,
    ) -> ValidCandidate:
        """The last gates: hold out part of the failing tests, and check the test files that show only the others."""
        passing = [test for test in outcome.results if outcome.results[test] == "passed"]
        problem = ""
        for number in range(_MOST_DRAWS):
            split = split_held_out(
                self._suite.units,
                outcome.failing(),
                passing,
                covers,
                random.Random(f"{self._seed} {candidate.key} {number}"),
            )
            if split is None:
                break
            trimmed = trim_suite(self._suite, split.cuts)
            problem = self._visible_suite_problem(split, trimmed, test_runner)
            if not problem:
                removed_files = {path for path, content in trimmed.items() if content is None}
                visible_files = SourceTree({path: content for path, content in trimmed.items() if content is not None})
                hidden = frozenset(split.also_hidden)
                start = visible_files.overlaid_on(start_tree.without(removed_files))
                return ValidCandidate(
                    candidate=candidate,
                    start=start,
                    deleted=deleted,
                    split=split,
                    pass_to_pass=tuple(test for test in passing if test not in hidden),
                    held_out_passing=tuple(test for test in passing if test in hidden),
                    failure_messages=outcome.messages,
                    predicted_failing=predicted,
                )
        raise CandidateRejected(
            "no_held_out", problem or "no part of the tests can be hidden so that both parts need all of it"
        )

    def _deletable(self, copy: Function | None) -> Function | None:
        """The author's function for one of the reduced tree, whose lines may differ; None if it has to stay."""
        same = [
            function
            for function in self._functions
            if copy and (function.path, function.qualname) == (copy.path, copy.qualname)
        ]
        return same[0] if len(same) == 1 and same[0] not in self.coverage_map.protected else None

    def unsplittable(self, covers: Mapping[Function, frozenset[str]]) -> frozenset[Function]:
        """Functions whose tests cannot be split into visible and held-out ones."""
        return frozenset(unsplittable(self._suite.units, covers))

    def without_functions(self, functions: Collection[Function]) -> SourceTree:
        """The author's tree without these functions."""
        return self._without_functions(functions, self._tier)

    def _without_functions(self, functions: Collection[Function], tier: Tier) -> SourceTree:
        return delete_functions(self.project.tree, functions, tier, test_paths=self.project.test_paths).tree

    def _worth_deleting(self, candidate: Candidate, test_runner: WarmTestRunner) -> frozenset[Function]:
        """The functions that a test that can be visible and a test that can be held out need."""
        by_map = {
            function: self.coverage_map.tests[function]
            for function in candidate.functions
            if function in self.coverage_map.tests
        }
        unneeded = self.unsplittable(by_map)
        _refuse_for(unneeded & {*candidate.seeds}, by_map)
        remaining = frozenset(by_map.keys() - unneeded)
        if len(remaining) == 1:
            return remaining
        failing_alone = {
            function: self._single_deletion.some_failing_tests(function, test_runner) for function in sorted(remaining)
        }
        expected = self.baseline.in_order(frozenset[str]().union(*(by_map[function] for function in remaining)))
        for function in sorted(self._blocking_functions(candidate, failing_alone, expected)):
            failing_alone[function] = self._single_deletion.failing_among(by_map[function], function, test_runner)
        unneeded = self._blocking_functions(candidate, failing_alone, expected)
        _refuse_for(unneeded & {*candidate.seeds}, failing_alone)
        return remaining - unneeded

    def _blocking_functions(
        self, candidate: Candidate, covers: Mapping[Function, frozenset[str]], failing: Sequence[str]
    ) -> frozenset[Function]:
        """The functions to leave in the code, so that the failing tests can be split into two parts that both need
        every remaining function.

        Seed functions are deleted first if possible, then those with many failing tests.
        """
        blocking = self.unsplittable(covers)
        remaining = {function: tests for function, tests in covers.items() if function not in blocking}
        if not remaining or self._can_be_split(remaining, failing):
            return blocking
        accepted: dict[Function, frozenset[str]] = {}
        for function in sorted(
            remaining, key=lambda function: (function not in candidate.seeds, -len(remaining[function]), function)
        ):
            if self._can_be_split({**accepted, function: remaining[function]}, failing):
                accepted[function] = remaining[function]
        return frozenset(covers.keys() - accepted.keys())

    def _can_be_split(self, covers: Mapping[Function, frozenset[str]], failing: Sequence[str]) -> bool:
        return split_held_out(self._suite.units, failing, (), covers, random.Random(0)) is not None

    def _covers(
        self, candidate: Candidate, members: frozenset[Function], outcome: SuiteOutcome, test_runner: WarmTestRunner
    ) -> dict[Function, frozenset[str]]:
        """By function: the failing tests that need it. Copies that no test reaches are not in it."""
        failing = frozenset(outcome.failing())
        if not failing:
            raise CandidateRejected("nothing_fails", "every test passes without it")
        reached = sorted(function for function in members if function in self.coverage_map.tests)
        if len(reached) == 1 and self._tier == "stub":
            return dict.fromkeys(reached, failing)  # where it is removed, whole files fail that only import its name
        failing_alone = {
            function: self._single_deletion.some_failing_tests(function, test_runner) for function in reached
        }
        masked = frozenset[str]().union(*failing_alone.values()) - failing
        if masked and len(candidate.seeds) > 1:
            raise CandidateRejected("masked", f"{min(masked)} fails without a part of it, and passes without all of it")
        return {function: tests & failing for function, tests in failing_alone.items()}

    def _visible_suite_problem(
        self, split: HeldOutSplit, trimmed: Mapping[str, bytes | None], test_runner: WarmTestRunner
    ) -> str:
        """The first problem of the agent's test files over the author's sources; empty if there is none.

        Every id is checked. Of the tests that stay visible, a sample is run.
        """
        hidden = {*split.held_out, *split.also_hidden}
        overlay = {path: content for path, content in trimmed.items() if content is not None}
        files = {
            file: [test for test in ids if test not in hidden]
            for file, ids in group_by_file(self.baseline.tests).items()
            if trimmed.get(file, b"") is not None and (file in trimmed or hidden.intersection(ids))
        }
        sampled = {*split.visible}.union(*(visible[:: max(1, len(visible) // _SOME)] for visible in files.values()))
        for group in self._groups(files):
            visible = [test for file in group for test in files[file]]
            to_run = tuple(test for test in visible if test in sampled)
            seconds = sum(map(self.baseline.seconds_for, group))
            request = PytestRequest(tuple(group), to_run, overlay, seconds=seconds, silence=self.baseline.silence)
            result = test_runner.run(request)
            collected = {*result.collected}
            if leaked := sorted(hidden & collected):
                return f"{leaked[0]} can still be seen"
            if missing := [test for test in visible if test not in collected]:
                return f"{missing[0]} cannot be seen any more"
            if failed := [test for test in to_run if result.result(test) != "passed"]:
                return f"{failed[0]} fails in what is left of its file"
        return ""

    def _groups(self, files: Collection[str]) -> list[list[str]]:
        """Files that can share a process, then the others one by one."""
        together = [file for file in files if file in self.baseline.together]
        return [*([together] if together else []), *([file] for file in files if file not in self.baseline.together)]

    def _refuse_if_one_is_enough(
        self, candidate: Candidate, covers: Mapping[Function, frozenset[str]], test_runner: WarmTestRunner
    ) -> None:
        """Reject a candidate if restoring a seed function alone makes every test pass. For the other functions this
        follows from earlier runs: the same tests fail without the seed function alone and without all of them."""
        for seed in candidate.seeds if len(covers) > 1 else ():
            rest = [function for function in covers if function != seed]
            tests = self.baseline.in_order(frozenset[str]().union(*(covers[function] for function in rest)))
            overlay = changed_files(self.project.tree, self.without_functions(rest))
            outcome = run_tests(test_runner, self.baseline, overlay, tests[:1])
            if not outcome.failing() and not run_tests(test_runner, self.baseline, overlay, tests).failing():
                raise CandidateRejected("one_is_enough", f"restoring {seed.name} alone mends everything")


def _refuse_for(seeds: Collection[Function], covers: Mapping[Function, frozenset[str]]) -> None:
    """Reject a candidate whose seed function cannot be deleted."""
    for seed in sorted(seeds):
        if not covers[seed]:
            raise CandidateRejected("nothing_fails", f"every test passes without {seed.name}")
        raise CandidateRejected(
            "no_held_out", f"{seed.name} is shown by {len(covers[seed])} tests that cannot be told apart"
        )
