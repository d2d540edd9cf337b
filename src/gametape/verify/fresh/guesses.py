"""What one short expression for each function would have answered, and how often that is right.

An attempt can put any expression of the arguments in place of the work. Which ones are right is measured, over the
recorded calls of a function and over drawn ones. An expression that is right on all of them is the work, as far as
anybody can tell; one that is right on a notable share is a guess.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.corpus import argument_places, is_plain
from gametape.verify.fresh.expressions import Expression, Operand, Values, gives, right_expressions
from gametape.verify.fresh.guessable import told_parts
from gametape.verify.fresh.program import Program, ProgramStep, object_data, part_at
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import StandIn

_RECORDED, _DRAWN, _MEASURED = 30, 40, 80
"""Recorded and drawn steps of a function that are searched for expressions, and recorded ones on which these are
measured."""
_NOTABLE, _LEAST = 0.08, 2
"""The share of a function's answers that a guess has right, and their number."""
_MOST_GUESSES, _MOST_WIDEST, _MOST_MEASURED = 24, 14, 120
_MOST_HISTORY = 40
_MOST_KEPT = 2000
_ERROR, _NOTHING = ("an error",), ("nothing",)
"""In place of an expression, where an answer tells nothing."""
Guesses = Mapping[str, frozenset[Operand]]
"""For each function that a program asks, the guesses that are right wherever it asks it."""


@dataclass
class _FunctionGuesses:
    """What was learned of one function."""

    answers: list[tuple[Values, Any]] = field(default_factory=list)
    drawn: int = 0
    found: Counter[Operand] = field(default_factory=Counter)
    """How many of the answers each expression was found for; a search does not find all."""
    measured: tuple[tuple[Operand, ...], frozenset[Operand]] | None = None

    def measure(self) -> tuple[tuple[Operand, ...], frozenset[Operand]]:
        """The guesses, those first that are right where no other one is, and the expressions that are right on all
        answers."""
        if self.measured is None:
            ranked = sorted(self.found, key=lambda one: (-self.found[one], len(repr(one)), repr(one)))
            hits: dict[int, Operand] = {}
            for expression in ranked[:_MOST_MEASURED]:
                bits = sum(gives(expression, *answer) << at for at, answer in enumerate(self.answers))
                hits.setdefault(bits, expression)
            every = (1 << len(self.answers)) - 1
            least = max(_LEAST, _NOTABLE * len(self.answers))
            ordered = sorted(hits, key=int.bit_count, reverse=True)
            notable = [bits for bits in ordered if bits != every and bits.bit_count() >= least]
            widest: list[int] = []
            for bits in notable:
                if len(widest) < _MOST_WIDEST and not any(bits & ~other == 0 for other in widest):
                    widest.append(bits)
            best = [*widest, *(bits for bits in notable if bits not in widest)]
            self.measured = (
                tuple(hits[bits] for bits in best[:_MOST_GUESSES]),
                frozenset(expression for bits, expression in hits.items() if bits == every),
            )
        return self.measured


def likeliest_expressions(answers: Sequence[tuple[Values, Any]]) -> list[Operand]:
    """The expressions that give the most of some answers, best first."""
    known = _FunctionGuesses([*answers])
    for values, answer in answers[:_RECORDED]:
        known.found.update(right_expressions(values, answer))
    guesses, work = known.measure()
    return [*sorted(work, key=repr), *guesses]


class GuessBook:
    """The guesses at the functions of one task."""

    def __init__(self) -> None:
        self._functions: dict[str, _FunctionGuesses] = defaultdict(_FunctionGuesses)
        self._right: dict[str, Guesses | None] = {}
        """What is right for programs that were asked about since something was learned, by their keys."""

    def learn(self, program: Program, played: PlayedProgram, decisive: Iterable[int], drawn: bool = False) -> None:
        """Find the expressions that give the answers to these steps, as long as few were seen of their function."""
        for index in decisive:
            known = self._functions[program.steps[index].function]
            target = _target(program.steps[index], played.answers[index])
            seen = known.drawn if drawn else len(known.answers) - known.drawn
            if target is None or seen >= (_DRAWN if drawn else _MEASURED):
                continue
            values = values_at(program, index, played)
            known.answers.append((values, target[0]))
            known.drawn += drawn
            if target[0] is not None and (drawn or seen < _RECORDED):
                known.found.update(right_expressions(values, target[0]))
            known.measured = None
            self._right.clear()

    def best(self, function: str) -> tuple[Operand, ...]:
        """The expressions that are right most often, without the work itself and without two that are alike."""
        return self._functions[function].measure()[0]

    def work(self, function: str) -> frozenset[Operand]:
        """An expression that was right on every answer."""
        return self._functions[function].measure()[1]

    def right(self, program: Program, played: PlayedProgram, decisive: Iterable[int]) -> Guesses | None:
        """The expressions with which a program is answered as by the reference; None where a step is beyond them."""
        if program.key not in self._right:
            if len(self._right) >= _MOST_KEPT:
                self._right.clear()
            self._right[program.key] = self._find_right(program, played, decisive)
        return self._right[program.key]

    def _find_right(self, program: Program, played: PlayedProgram, decisive: Iterable[int]) -> Guesses | None:
        found: dict[str, frozenset[Operand]] = {}
        for index in decisive:
            step, answer = program.steps[index], played.answers[index]
            right: set[Operand] = {told} if (told := _without_work(step, answer)) else set()
            if target := _target(step, answer):
                values = values_at(program, index, played)
                asked = (*self.best(step.function), *self.work(step.function))
                right |= {one for one in asked if gives(one, values, target[0])}
            found[step.function] = found.get(step.function, frozenset(right)) & right
            if not found[step.function]:
                return None
        return found

    def _has_guess(self, guesses: Guesses) -> bool:
        """Whether one of these functions has an expression that is not its work."""
        return any(right - self.work(function) - {_NOTHING} for function, right in guesses.items())

    def share(self, guesses: Sequence[Guesses | None]) -> bool:
        """Whether one choice of expressions, one for each function, is right for all of these programs, and is not the
        work."""
        common: dict[str, frozenset[Operand]] = {}
        for one in guesses:
            if one is None:
                return False
            for function, right in one.items():
                common[function] = common.get(function, right) & right
        return all(common.values()) and self._has_guess(common)


def values_at(program: Program, index: int, played: PlayedProgram | None = None) -> Values:
    """What an expression in place of a function can use at this step: its arguments by position or name, what its
    object was made of (`made 0`), and what the object was given since: the first arguments in order (`given`), those
    that the same question did not take away yet, from the front and from the back (`waiting`, `stack`), and the second
    arguments by the first (`table`)."""
    step = program.steps[index]
    values = _plain_arguments(step)
    if step.operation == words.RUN_PROGRAM:
        return values
    behind = [one for one in program.steps_behind(index) if one.is_call]
    made = next((found for one in reversed(behind) if (found := _plain_arguments(one))), {})
    values |= {f"made {name}": value for name, value in made.items()}
    if step.fields and not isinstance(step.fields[0], (str, tuple)):
        values |= _given(program, index, played)
    if step.operation == words.NEXT:
        values["turn"] = sum(one.operation == words.NEXT and one.fields == step.fields for one in program.steps[:index])
    return values


def _given(program: Program, index: int, played: PlayedProgram | None) -> dict[str, Any]:
    asked = program.steps[index]
    given: list[Any] = []
    waiting: list[Any] = []
    stack: list[Any] = []
    table: dict[Any, Any] = {}
    for at, step in list(enumerate(program.steps[:index]))[-_MOST_HISTORY:]:
        if not step.is_call or step.operation == words.CALL or step.fields[0] != asked.fields[0]:
            continue
        arguments = [*_plain_arguments(step).values()]
        if arguments:
            for held in (given, waiting, stack):
                held.append(arguments[0])
            if len(arguments) > 1 and type(arguments[0]) in (str, int, tuple):
                table[arguments[0]] = arguments[1]
        elif step.function == asked.function and (played is None or played.answers[at][0] == words.RETURN):
            del waiting[:1], stack[-1:]
    if not given:
        return {}
    return {"given": given, "waiting": waiting, "stack": stack, **({"table": table} if table else {})}


def _plain_arguments(step: ProgramStep) -> dict[str, Any]:
    """The plain arguments of a step by position or name."""
    if step.operation == words.GET:
        return {}
    return {
        str(place[-1]): value
        for place, path in argument_places(step.function, step.operation, step.fields)
        if is_plain(value := part_at(step.fields, path))
    }


def _target(step: ProgramStep, answer: tuple[Any, ...]) -> tuple[Any] | None:
    """The one plain value that an answer tells; None where it tells no value or several."""
    if answer[0] != words.RETURN or step.is_comparison:
        return None
    told = [part for part in told_parts(answer) if part is not None] or [None]
    data = object_data(told[0]) if isinstance(told[0], StandIn) else told[0]
    if len(told) != 1 or (isinstance(told[0], StandIn) and data is None):
        return None
    return (data,) if is_plain(data) else None


def _without_work(step: ProgramStep, answer: tuple[Any, ...]) -> Expression | None:
    """The name of an answer that tells nothing: an error, an object, or no value at all."""
    if answer[0] == words.RAISE:
        return _ERROR
    if step.is_comparison or answer[0] != words.RETURN:
        return None
    told = [part for part in told_parts(answer) if part is not None]
    is_object = len(told) == 1 and isinstance(told[0], StandIn) and object_data(told[0]) is None
    return _NOTHING if is_object or not told else None
