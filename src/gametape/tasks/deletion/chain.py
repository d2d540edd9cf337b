"""A long task: many features deleted at once, to be brought back one after the other.

Inner features come first. Each stage has tests of its own, which pass when its feature and those before it are back,
and not earlier; a part of them is held out. The tests of earlier stages must keep passing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gametape.tasks.deletion.features import Candidate
from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.running import changed, run_suite, run_tests
from gametape.tasks.deletion.trial import Find, Rejected, Trial
from gametape.verify.survey import Surveyor

Part = tuple[Function, frozenset[Function]]
"""A seed, and what is deleted with it."""


@dataclass(frozen=True)
class Chain:
    """A find with an order: for each stage its seed, and the tests that it turns."""

    find: Find
    stages: tuple[tuple[Function, frozenset[str]], ...]


def apart(found: Iterable[Part], most: int) -> list[Part]:
    """Features that share no function, small ones first: of one that holds another, the rest is left."""
    taken: set[Function] = set()
    parts: list[Part] = []
    for seed, functions in sorted(found, key=lambda part: (len(part[1]), part[0])):
        rest = functions - taken
        if seed in rest and len(parts) < most:
            parts.append((seed, rest))
            taken |= rest
    return parts


def in_turn(trial: Trial, parts: Sequence[Part]) -> list[Part]:
    """The order in which most tests tell stages apart, by the map. Features that no test shows in time are left out."""
    needs: dict[str, set[int]] = {}
    for number, (_, functions) in enumerate(parts):
        for test in frozenset[str]().union(*(trial.reached.tests.get(one, frozenset()) for one in functions)):
            needs.setdefault(test, set()).add(number)
    order: list[int] = []
    left = set(range(len(parts)))
    while left:
        back = {*order}
        shows = {one: frozenset(test for test in needs if one in needs[test] <= back | {one}) for one in left}
        ready = [one for one in left if not trial.hopeless({parts[one][0]: shows[one]})]
        if not ready:
            lost = max(left)  # without it, fewer features are in the way of the others
            left.discard(lost)
            needs = {test: numbers - {lost} for test, numbers in needs.items() if numbers != {lost}}
            continue
        best = max(ready, key=lambda one: (len(shows[one]), -one))
        order.append(best)
        left.discard(best)
    return [parts[number] for number in order]


def link(trial: Trial, parts: Sequence[Part], surveyor: Surveyor) -> Chain:
    """Delete all of these features and see which tests each of them brings back, or say why they make no chain."""
    while len(parts) > 1:
        deleted = frozenset[Function]().union(*(functions for _, functions in parts))
        if trial.without_leaks(deleted) != deleted:
            raise Rejected("leak", "a copy of a deleted function stands elsewhere")
        expected = frozenset[str]().union(*(trial.reached.tests.get(one, frozenset()) for one in deleted))
        start = trial.carved(deleted)
        run = run_suite(surveyor, trial.baseline, changed(trial.project.tree, start), expected)
        turned = _turned(trial, parts, run.failing(), surveyor)
        late = trial.hopeless({seed: turned[seed] for seed, _ in parts})
        if not late:
            candidate = Candidate(tuple(seed for seed, _ in parts), tuple(functions for _, functions in parts))
            find = trial.settle(candidate, start, deleted, run, turned, expected, surveyor)
            return Chain(find, tuple((seed, turned[seed]) for seed, _ in parts))
        parts = [part for part in parts if part[0] not in late]
    raise Rejected("no_held_out", "fewer than two stages have tests of their own that can be told apart")


def _turned(
    trial: Trial, parts: Sequence[Part], failing: Sequence[str], surveyor: Surveyor
) -> Mapping[Function, frozenset[str]]:
    """By seed, the tests that pass for good once its feature is back."""
    turned: dict[Function, frozenset[str]] = {}
    waiting = failing
    for number, (seed, _) in enumerate(parts):
        missing = frozenset[Function]().union(*(functions for _, functions in parts[number + 1 :]))
        laid = changed(trial.project.tree, trial.carved(missing)) if missing else {}
        still = {*run_tests(surveyor, trial.baseline, laid, failing).failing()}
        turned[seed] = frozenset(test for test in waiting if test not in still)
        turned = {earlier: tests - still for earlier, tests in turned.items()}
        waiting = [test for test in failing if not any(test in tests for tests in turned.values())]
    return turned
