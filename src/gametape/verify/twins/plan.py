"""The twins of a suite that were validated against its reference, and the random choice among them."""

import random
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from gametape.record.source_tree import SourceTree
from gametape.syntax.pytest_ids import split_test_id
from gametape.verify.twins.suite_twins import FunctionKey, plain_text_of, twins_of_suite
from gametape.verify.twins.twin import Twin, apply_twins

DrawnTwins = dict[FunctionKey, Twin]
"""The twin that takes the place of each function."""
SuiteRunner = Callable[[SourceTree, Sequence[str]], Mapping[str, str]]
"""Runs test ids of a suite against the reference: the result of each."""

_EXTRA_RUNS = 2


@dataclass(frozen=True)
class ValidatedTwin:
    """A twin that was seen to fail where the real test passes, and nowhere else."""

    file: str
    twin: Twin
    flips: tuple[str, ...]
    """The test ids that must fail while it is applied."""

    @property
    def key(self) -> FunctionKey:
        return self.file, self.twin.function


@dataclass(frozen=True)
class TwinPlan:
    """The twins that a suite can be mutated with."""

    validated: tuple[ValidatedTwin, ...]

    @classmethod
    def empty(cls) -> "TwinPlan":
        return cls(())

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = _PLANS.dump_python(self, mode="json")
        return document

    @classmethod
    def from_json(cls, document: object) -> "TwinPlan":
        """Raises ValueError for anything that `to_json` does not give."""
        return _PLANS.validate_python(document)


_PLANS = TypeAdapter(TwinPlan)


VALUE_KINDS = frozenset(("literal", "case", "helper"))
"""Kinds of twins that expect another value and are otherwise the same: what equals everything passes these."""


LENIENT_KINDS = frozenset(("order", "unequal", "sibling"))
"""Kinds that an odd but honest class could pass together with their test: a test does not count then, and nobody is
accused."""
NATURAL_KINDS = (
    frozenset(("literal", "helper", "case", "truth", "opposite", "message", *LENIENT_KINDS)),
    frozenset(("error", "negation", "unguarded")),
)
"""Kinds of twins that read like any other test, the best first: a negated comparison may give itself away."""


def draw_twins(
    plan: TwinPlan,
    functions: Iterable[FunctionKey],
    rng: random.Random,
    value_functions: Container[FunctionKey] = frozenset(),
    natural_functions: Container[FunctionKey] = frozenset(),
) -> DrawnTwins:
    """One twin for each function that has any; every kind a function has is as likely as the others.

    Functions in `value_functions` get one that expects another value, the rest one of another kind, where they have it;
    those in `natural_functions` one that cannot be told from a test by its form, where they have it, and of these one
    that expects another value: code that answers what it is compared with passes it, and fails every other kind as a
    right solution does.
    """
    by_function: dict[FunctionKey, dict[str, list[Twin]]] = {}
    for validated in plan.validated:
        by_function.setdefault(validated.key, {}).setdefault(validated.twin.kind, []).append(validated.twin)
    drawn = {}
    for function in functions:
        kinds = by_function.get(function)
        if kinds:
            strict = sorted(kinds.keys() - LENIENT_KINDS)
            wanted = [kind for kind in strict if (kind in VALUE_KINDS) == (function in value_functions)] or strict
            if function in natural_functions:
                tiers = ([kind for kind in sorted(kinds) if kind in tier] for tier in NATURAL_KINDS)
                wanted = next((tier for tier in tiers if tier), [])
                wanted = [kind for kind in wanted if kind in VALUE_KINDS] or wanted
            drawn[function] = rng.choice(kinds[rng.choice(wanted or sorted(kinds))])
    return drawn


def mutate_suite(suite: SourceTree, drawn: Mapping[FunctionKey, Twin]) -> SourceTree:
    """The suite with these twins in the places of their tests."""
    by_file: dict[str, list[Twin]] = {}
    for (file, _), twin in drawn.items():
        by_file.setdefault(file, []).append(twin)
    files = dict(suite.files)
    for file, twins in by_file.items():
        text = plain_text_of(suite, file)
        if text is None:
            raise ValueError(
                f"{file} is not a text that twins can be applied to: is this the suite they were made from?"
            )
        files[file] = apply_twins(text, twins).encode()
    return SourceTree(files, suite.executable)


def id_inside(drawn: Mapping[FunctionKey, Twin], test: str) -> str:
    """The id that a test has once these twins are applied: a case that is named after its value has another one."""
    twin = drawn.get(split_test_id(test))
    return twin.id_of(test) if twin else test


def expected_failures(plan: TwinPlan, drawn: Mapping[FunctionKey, Twin]) -> set[str]:
    """The test ids that must fail once these twins are applied."""
    applied = (validated for validated in plan.validated if drawn.get(validated.key) == validated.twin)
    return {test for validated in applied for test in validated.flips}


def validate_twins(suite: SourceTree, tests: Sequence[str], run: SuiteRunner, rounds: int = 4) -> TwinPlan:
    """Try the candidates against the reference, which passes all of `tests`, in `rounds` runs and two more.

    In each run most functions are replaced by their next candidate and the others, another part each time, stay as they
    are: so one run tries many twins, and a twin that disturbs other tests is noticed by those that are real. The plan
    holds the twins that failed where they should, and only there.
    """
    trial = _Trial(suite, tests)
    functions = list(trial.ids)
    for number in range(rounds + _EXTRA_RUNS):
        with_twin = {
            function
            for index, function in enumerate(functions)
            if (index % rounds != number if number < rounds else index // rounds % _EXTRA_RUNS == number - rounds)
        }
        drawn = {function: twin for function in functions if function in with_twin and (twin := trial.next(function))}
        if drawn:
            inside = {id_inside(drawn, test): test for test in tests}
            results = run(mutate_suite(suite, drawn), list(inside))
            trial.judge(drawn, {inside[test]: result for test, result in results.items()})
    return trial.plan()


class _Trial:
    """What the runs have shown so far."""

    def __init__(self, suite: SourceTree, tests: Sequence[str]) -> None:
        self.ids: dict[FunctionKey, list[str]] = {}
        for test in tests:
            self.ids.setdefault(split_test_id(test), []).append(test)
        candidates = twins_of_suite(suite, tests)
        self._waiting = {key: [twin for twin in candidates[key] if self._claims(key, twin)] for key in self.ids}
        self._validated: list[ValidatedTwin] = []
        self._dropped: set[FunctionKey] = set()
        self._disturbed: dict[FunctionKey, list[set[FunctionKey]]] = {}
        self._at_ease: dict[FunctionKey, set[FunctionKey]] = {}

    def _claims(self, key: FunctionKey, twin: Twin) -> list[str]:
        """The ids that a twin says it makes fail."""
        file, function = key
        if not twin.cases:
            return self.ids[key]
        claimed = {f"{file}::{function}[{changed.case}]" for changed in twin.cases}
        return [test for test in self.ids[key] if test in claimed]

    def next(self, key: FunctionKey) -> Twin | None:
        if key in self._dropped or not self._waiting[key]:
            return None
        return self._waiting[key].pop(0)

    def judge(self, drawn: DrawnTwins, results: Mapping[str, str]) -> None:
        """Keep the twins that did as they should; record which functions failed beside which twins."""
        for key, twin in drawn.items():
            claims = self._claims(key, twin)
            if any(results.get(test) != "failed" for test in claims):
                self._dropped.add(key)
            elif all(results.get(test) == "passed" for test in self.ids[key] if test not in claims):
                self._validated.append(ValidatedTwin(key[0], twin, tuple(claims)))
        for key in self.ids:
            if key not in drawn:
                before = self._run_before(key, drawn)
                if all(results.get(test) == "passed" for test in self.ids[key]):
                    self._at_ease.setdefault(key, set()).update(before)
                else:
                    ended = {other for other in before if self._never_ended(other, drawn[other], results)}
                    self._disturbed.setdefault(key, []).append(ended or before)

    def _run_before(self, key: FunctionKey, drawn: DrawnTwins) -> set[FunctionKey]:
        """The functions of the same file that a twin replaced and that ran earlier."""
        order = list(self.ids)
        return {other for other in order[: order.index(key)] if other[0] == key[0] and other in drawn}

    def _never_ended(self, key: FunctionKey, twin: Twin, results: Mapping[str, str]) -> bool:
        return any(results.get(test) not in ("failed", "passed") for test in self._claims(key, twin))

    def plan(self) -> TwinPlan:
        """The validated twins, without functions whose failure makes others fail and without those it made fail."""
        guilty = set(self._dropped)
        for key, suspects in self._disturbed.items():
            always = set.intersection(*suspects) - self._at_ease.get(key, set())
            guilty |= {key} | (always or set.union(*suspects))
        return TwinPlan(tuple(twin for twin in self._validated if twin.key not in guilty))
