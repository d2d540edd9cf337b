"""A long task: many features deleted at once, to be brought back one after the other.

Inner features come first. Each stage has tests of its own, which pass when its feature and those before it are back,
and not earlier; a part of them is held out. The tests of earlier stages must keep passing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gametape.tasks.mining.candidates import Candidate
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.suite_run import changed_files, run_suite, run_tests
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

SeededFeature = tuple[Function, frozenset[Function]]
"""A seed, and what is deleted with it."""


@dataclass(frozen=True)
class FeatureChain:
    """A find with an order: for each stage its seed, and the tests that it turns."""

    valid_candidate: ValidCandidate
    stages: tuple[tuple[Function, frozenset[str]], ...]


def select_disjoint_features(features: Iterable[SeededFeature], max_count: int) -> list[SeededFeature]:
    """Features that share no function, small ones first: of one that holds another, the rest is left."""
    taken: set[Function] = set()
    parts: list[SeededFeature] = []
    for seed, functions in sorted(features, key=lambda part: (len(part[1]), part[0])):
        rest = functions - taken
        if seed in rest and len(parts) < max_count:
            parts.append((seed, rest))
            taken |= rest
    return parts


def order_features(trial: CandidateTrial, parts: Sequence[SeededFeature]) -> list[SeededFeature]:
    """The order in which most tests tell stages apart, by the map. Features that no test shows in time are left out."""
    needs: dict[str, set[int]] = {}
    for number, (_, functions) in enumerate(parts):
        for test in frozenset[str]().union(*(trial.coverage_map.tests.get(one, frozenset()) for one in functions)):
            needs.setdefault(test, set()).add(number)
    order: list[int] = []
    left = set(range(len(parts)))
    while left:
        back = {*order}
        shows = {one: frozenset(test for test in needs if one in needs[test] <= back | {one}) for one in left}
        ready = [one for one in left if not trial.unsplittable({parts[one][0]: shows[one]})]
        if not ready:
            lost = max(left)  # without it, fewer features are in the way of the others
            left.discard(lost)
            needs = {test: numbers - {lost} for test, numbers in needs.items() if numbers != {lost}}
            continue
        best = max(ready, key=lambda one: (len(shows[one]), -one))
        order.append(best)
        left.discard(best)
    return [parts[number] for number in order]


def build_chain(trial: CandidateTrial, parts: Sequence[SeededFeature], surveyor: WarmTestRunner) -> FeatureChain:
    """Delete all of these features and see which tests each of them brings back, or say why they make no chain."""
    while len(parts) > 1:
        deleted = frozenset[Function]().union(*(functions for _, functions in parts))
        if trial.include_copies(deleted) != deleted:
            raise CandidateRejected("leak", "a copy of a deleted function stands elsewhere")
        expected = frozenset[str]().union(*(trial.coverage_map.tests.get(one, frozenset()) for one in deleted))
        start = trial.without_functions(deleted)
        run = run_suite(surveyor, trial.baseline, changed_files(trial.project.tree, start), expected)
        turned = _turned(trial, parts, run.failing(), surveyor)
        late = trial.unsplittable({seed: turned[seed] for seed, _ in parts})
        if not late:
            candidate = Candidate(tuple(seed for seed, _ in parts), tuple(functions for _, functions in parts))
            find = trial.hold_out_tests(candidate, start, deleted, run, turned, expected, surveyor)
            return FeatureChain(find, tuple((seed, turned[seed]) for seed, _ in parts))
        parts = [part for part in parts if part[0] not in late]
    raise CandidateRejected("no_held_out", "fewer than two stages have tests of their own that can be told apart")


def _turned(
    trial: CandidateTrial, parts: Sequence[SeededFeature], failing: Sequence[str], surveyor: WarmTestRunner
) -> Mapping[Function, frozenset[str]]:
    """By seed, the tests that pass for good once its feature is back."""
    turned: dict[Function, frozenset[str]] = {}
    waiting = failing
    for number, (seed, _) in enumerate(parts):
        missing = frozenset[Function]().union(*(functions for _, functions in parts[number + 1 :]))
        laid = changed_files(trial.project.tree, trial.without_functions(missing)) if missing else {}
        still = {*run_tests(surveyor, trial.baseline, laid, failing).failing()}
        turned[seed] = frozenset(test for test in waiting if test not in still)
        turned = {earlier: tests - still for earlier, tests in turned.items()}
        waiting = [test for test in failing if not any(test in tests for tests in turned.values())]
    return turned
