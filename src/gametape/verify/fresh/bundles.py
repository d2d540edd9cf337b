"""Fresh calls: a drawn program with the reference's answers, or a few whose single answers could be guessed."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.differences import differing_steps
from gametape.verify.fresh.named_objects import identities
from gametape.verify.fresh.program import Program

_BUNDLE = 6
"""Programs with guessable answers that count as one call together."""


@dataclass(frozen=True)
class AnsweredProgram:
    """A drawn program with the reference's answers."""

    program: Program
    expected: PlayedProgram
    function: str
    guessable: bool
    kept: bool = False
    """Whether its answers are those of the recorded program that it was made from."""
    recorded: bool = False
    """Whether it is a recorded program itself, there for its answer; it may serve in several calls."""
    shown: bool = False
    """Whether a visible test makes the same calls, so that its answer is known."""

    @property
    def key(self) -> str:
        """Identifies it by what is asked."""
        return self.program.key

    def first_difference(self, played: PlayedProgram) -> int | None:
        """The first step whose answer is another one."""
        return next(iter(differing_steps(self.program, self.expected, played)), None)


@dataclass(frozen=True)
class FreshCall:
    """What counts as one call: a drawn program, or a few whose single answers could be guessed."""

    programs: tuple[AnsweredProgram, ...]

    @property
    def function(self) -> str:
        return self.programs[0].function

    @property
    def keys(self) -> frozenset[str]:
        """Identify its drawn programs."""
        return frozenset(answered.key for answered in self.programs if not answered.recorded)


def make_bundles(
    drawn: Sequence[AnsweredProgram], recorded: Sequence[AnsweredProgram], rng: random.Random
) -> tuple[list[FreshCall], list[AnsweredProgram]]:
    """Calls of a few programs each, in an order that says nothing, and what is left.

    Each has programs that changed the answer and, where there is one, a program that kept it: neither the answer to the
    nearest recorded call nor the opposite of it is right for all. Not all have the same answer: where the drawn ones
    do, a recorded one with another joins them, of a held-out test where there is one.
    """
    changed = [program for program in drawn if not program.kept]
    kept = [program for program in drawn if program.kept]
    bundles: list[FreshCall] = []
    while changed:
        few = rng.randint(1, 2) if kept else 0
        bundle = [kept.pop() for _ in range(min(few, len(kept)))]
        bundle += [changed.pop() for _ in range(min(_BUNDLE - len(bundle), len(changed)))]
        if len({_outcome(program) for program in bundle}) == 1:
            others = [program for program in recorded if _outcome(program) != _outcome(bundle[0])]
            if others:
                bundle[0] = rng.choice([program for program in others if not program.shown] or others)
        if len(bundle) < _BUNDLE or len({_outcome(program) for program in bundle}) == 1:
            break
        bundles.append(FreshCall(tuple(rng.sample(bundle, len(bundle)))))
    used = {id(program) for call in bundles for program in call.programs}
    return bundles, [program for program in drawn if id(program) not in used]


def take_turns(calls: Sequence[FreshCall], wanted: int, rng: random.Random) -> list[FreshCall]:
    """As many of the calls as wanted, the functions in turn, no drawn program twice."""
    by_function: dict[str, list[FreshCall]] = defaultdict(list)
    for call in rng.sample(calls, len(calls)):
        by_function[call.function].append(call)
    taken: list[FreshCall] = []
    keys: set[str] = set()
    while by_function and len(taken) < wanted:
        for function in rng.sample([*by_function], len(by_function)):
            call = by_function[function].pop()
            if not by_function[function]:
                del by_function[function]
            if len(taken) < wanted and not keys & call.keys:
                keys |= call.keys
                taken.append(call)
    return taken


def asked_once(calls: Sequence[FreshCall]) -> list[AnsweredProgram]:
    """Every program of some calls, each once."""
    return list({answered.key: answered for call in calls for answered in call.programs}.values())


def _outcome(answered: AnsweredProgram) -> str:
    """The last answer of a program, as far as it counts."""
    program, expected = answered.program, answered.expected
    index = len(program.steps) - len(program.look_ups) - 1
    kind, _, value = expected.answers[index][:3]
    return repr((kind, identities(program, expected.answers, index) or expected.errors.get(index, value)))
