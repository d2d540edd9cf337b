"""Chains: long tasks in which many features are deleted at once and restored one after the other, in stages.

Inner features come first. Each stage has its own tests, which pass once its feature and those before it are restored,
and not earlier; part of them is held out. The tests of earlier stages must keep passing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gametape.tasks.mining.candidates import Candidate
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.suite_run import changed_files, run_suite, run_tests
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

SeededFeature = tuple[Function, frozenset[Function]]
"""A seed function, and the functions that are deleted with it."""


@dataclass(frozen=True)
class FeatureChain:
    """A valid candidate with an order: for each stage its seed function, and the tests that it makes pass."""

    valid_candidate: ValidCandidate
    stages: tuple[tuple[Function, frozenset[str]], ...]


def select_disjoint_features(features: Iterable[SeededFeature], max_count: int) -> list[SeededFeature]:
    """Up to `max_count` features that share no function, small ones first: a larger one keeps what is left of it."""
    taken: set[Function] = set()
    parts: list[SeededFeature] = []
    for seed, functions in sorted(features, key=lambda part: (len(part[1]), part[0])):
        rest = functions - taken
        if seed in rest and len(parts) < max_count:
            parts.append((seed, rest))
            taken |= rest
    return parts


def order_features(trial: CandidateTrial, parts: Sequence[SeededFeature]) -> list[SeededFeature]:
    """Order features so that as many tests as possible separate the stages, by the coverage map.

    A feature that no test of its own would show at its stage is left out."""
    needs: dict[str, set[int]] = {}
    for number, (_, functions) in enumerate(parts):
        for test in trial.coverage_map.tests_of(functions):
            needs.setdefault(test, set()).add(number)
    order: list[int] = []
    left = set(range(len(parts)))
    while left:
        restored = {*order}
        shows = {
            feature: frozenset(test for test in needs if feature in needs[test] <= restored | {feature})
            for feature in left
        }
        ready = [feature for feature in left if not trial.unsplittable({parts[feature][0]: shows[feature]})]
        if not ready:
            dropped = max(left)  # without it, fewer features are in the way of the others
            left.discard(dropped)
            needs = {test: needed - {dropped} for test, needed in needs.items() if needed != {dropped}}
            continue
        best = max(ready, key=lambda feature: (len(shows[feature]), -feature))
        order.append(best)
        left.discard(best)
    return [parts[number] for number in order]


def build_chain(trial: CandidateTrial, parts: Sequence[SeededFeature], test_runner: WarmTestRunner) -> FeatureChain:
    """Delete all of these features and find the tests that each makes pass. Raises `CandidateRejected`."""
    while len(parts) > 1:
        deleted = frozenset[Function]().union(*(functions for _, functions in parts))
        if trial.include_copies(deleted) != deleted:
            raise CandidateRejected("leak", "a copy of a deleted function stands elsewhere")
        expected = trial.coverage_map.tests_of(deleted)
        start = trial.without_functions(deleted)
        outcome = run_suite(test_runner, trial.baseline, changed_files(trial.project.tree, start), expected)
        made_to_pass = _tests_by_stage(trial, parts, outcome.failing(), test_runner)
        late_functions = trial.unsplittable({seed: made_to_pass[seed] for seed, _ in parts})
        if not late_functions:
            candidate = Candidate(tuple(seed for seed, _ in parts), tuple(functions for _, functions in parts))
            valid = trial.hold_out_tests(candidate, start, deleted, outcome, made_to_pass, expected, test_runner)
            return FeatureChain(valid, tuple((seed, made_to_pass[seed]) for seed, _ in parts))
        parts = [part for part in parts if part[0] not in late_functions]
    raise CandidateRejected("no_held_out", "fewer than two stages have tests of their own that can be split")


def _tests_by_stage(
    trial: CandidateTrial, parts: Sequence[SeededFeature], failing: Sequence[str], test_runner: WarmTestRunner
) -> Mapping[Function, frozenset[str]]:
    """By seed function: the tests that pass from its stage on."""
    made_to_pass: dict[Function, frozenset[str]] = {}
    waiting = failing
    for number, (seed, _) in enumerate(parts):
        missing = frozenset[Function]().union(*(functions for _, functions in parts[number + 1 :]))
        overlay = changed_files(trial.project.tree, trial.without_functions(missing)) if missing else {}
        still = {*run_tests(test_runner, trial.baseline, overlay, failing).failing()}
        made_to_pass[seed] = frozenset(test for test in waiting if test not in still)
        made_to_pass = {earlier: tests - still for earlier, tests in made_to_pass.items()}
        waiting = [test for test in failing if not any(test in tests for tests in made_to_pass.values())]
    return made_to_pass
