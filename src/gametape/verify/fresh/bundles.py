"""Fresh calls: a drawn program with the reference's answers, or a few whose single answers could be guessed."""

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.differences import differing_steps
from gametape.verify.fresh.effects import heard
from gametape.verify.fresh.guesses import GuessBook, Guesses
from gametape.verify.fresh.named_objects import identities
from gametape.verify.fresh.program import Program

_BUNDLE = 6
"""Programs with guessable answers that count as one call together."""
_MOST_BUNDLES = 0.2
"""The share of such calls in a set, where there are others."""
_MOST_TRIES = 60
_LEAST_CALLS = 6
"""Where there are fewer, programs that an expression answers count by themselves."""


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
    decisive: tuple[int, ...] = ()
    """The steps that the starting tree answers otherwise."""
    behind: bool = False
    """Whether what is missing is none of the functions that it asks."""
    guesses: Guesses | None = None
    """The expressions in place of its functions that are right, see `GuessBook`; None where there are none."""

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


def compose_calls(
    drawn: Sequence[AnsweredProgram],
    recorded: Callable[[str], Sequence[AnsweredProgram]],
    book: GuessBook,
    wanted: int,
    rng: random.Random,
) -> list[FreshCall]:
    """As many calls as wanted. A program whose answer can be guessed counts only together with others: with some of
    the same function that have other answers, or with one whose answer cannot be guessed. One that an expression
    answers counts together with one that it does not answer. `recorded` gives the recorded programs of a function."""
    by_function: dict[str, list[AnsweredProgram]] = defaultdict(list)
    for program in drawn:
        by_function[program.function].append(program)
    singles: list[FreshCall] = []
    bundles: list[FreshCall] = []
    left: list[AnsweredProgram] = []
    unpaired: list[AnsweredProgram] = []
    for function, programs in by_function.items():
        hard = [program for program in programs if not program.guessable]
        breaking = _breaking(programs, recorded(function), rng)
        made, open_ones = _singles(hard, breaking, book, rng)
        singles += made
        unpaired += open_ones
        easy = [program for program in programs if program.guessable]
        made, rest = make_bundles(easy, recorded(function), rng, book, breaking)
        bundles += made
        left += rest
    if len(singles) + len(bundles) < _LEAST_CALLS:
        singles += [FreshCall((program,)) for program in unpaired]
    joined = rng.sample(singles, len(singles))
    singles = [FreshCall((*call.programs, *left[at : at + 1])) for at, call in enumerate(joined)]
    most_bundles = max(wanted - len(singles), int(wanted * _MOST_BUNDLES))
    alone = {single.function for single in singles}
    bundles.sort(key=lambda bundle: bundle.function in alone)
    return take_turns([*singles, *bundles[:most_bundles]], wanted, rng)


def _singles(
    programs: Sequence[AnsweredProgram], breaking: Sequence[AnsweredProgram], book: GuessBook, rng: random.Random
) -> tuple[list[FreshCall], list[AnsweredProgram]]:
    """Calls of one program each whose answer no expression gives, calls of two that no expression answers both, and the
    programs that are left: an expression answers them all."""
    beyond: list[AnsweredProgram] = []
    within: list[AnsweredProgram] = []
    for program in rng.sample(programs, len(programs)):
        (within if _is_guessed([program], book) else beyond).append(program)
    calls: list[FreshCall] = []
    alone: list[AnsweredProgram] = []
    while within:
        program = within.pop()
        at = next((at for at, one in enumerate(within) if not _is_guessed([program, one], book)), None)
        if at is None:
            alone.append(program)
        else:
            calls.append(FreshCall((program, within.pop(at))))
    unpaired: list[AnsweredProgram] = []
    for program, other in itertools.zip_longest(alone, beyond):
        if program is None or other is None:
            partner = next((one for one in breaking if program and not _is_guessed([program, one], book)), None)
            calls += [FreshCall((program, partner))] if program and partner else []
            calls += [FreshCall((other,))] if other else []
            unpaired += [program] if program and not partner else []
        else:
            calls.append(FreshCall((other, program)))
    return calls, unpaired


def _is_guessed(programs: Sequence[AnsweredProgram], book: GuessBook | None) -> bool:
    return book is not None and book.share([program.guesses for program in programs])


def make_bundles(
    drawn: Sequence[AnsweredProgram],
    recorded: Sequence[AnsweredProgram],
    rng: random.Random,
    book: GuessBook | None = None,
    breaking: Sequence[AnsweredProgram] = (),
) -> tuple[list[FreshCall], list[AnsweredProgram]]:
    """Calls of a few programs each, in an order that says nothing, and what is left.

    Each has programs that changed the answer and, where there is one, a program that kept it: neither the answer to the
    nearest recorded call nor the opposite of it is right for all. Not all have the same answer, and no guess is right
    for all: where the drawn ones do, a recorded one with another joins them, of a held-out test where there is one, or
    one of those that are `breaking`.
    """
    changed = [program for program in drawn if not program.kept]
    kept = [program for program in drawn if program.kept]
    bundles: list[FreshCall] = []
    while changed:
        few = rng.randint(1, 2) if kept else 0
        bundle = [kept.pop() for _ in range(min(few, len(kept)))]
        bundle += [changed.pop() for _ in range(min(_BUNDLE - len(bundle), len(changed)))]
        if len({_outcome(program) for program in bundle}) == 1:
            two_valued = [program for program in recorded if program.guessable]
            others = [program for program in two_valued if _outcome(program) != _outcome(bundle[0])]
            if others:
                bundle[0] = rng.choice([program for program in others if not program.shown] or others)
        if _is_guessed(bundle, book) and not _broken(bundle, changed, breaking, book):
            break
        if len(bundle) < _BUNDLE or len({_outcome(program) for program in bundle}) == 1:
            break
        bundles.append(FreshCall(tuple(rng.sample(bundle, len(bundle)))))
    used = {id(program) for call in bundles for program in call.programs}
    return bundles, [program for program in drawn if id(program) not in used]


def _broken(
    bundle: list[AnsweredProgram],
    others: list[AnsweredProgram],
    pool: Sequence[AnsweredProgram],
    book: GuessBook | None,
) -> bool:
    """Put a program into a bundle that the guess which is right for all of it does not answer, if there is one: one of
    the others, which is taken out, or one of the pool."""
    for at, one in enumerate(others[:_MOST_TRIES]):
        if not _is_guessed([*bundle[:-1], one], book):
            others[at], bundle[-1] = bundle[-1], one
            return True
    for one in pool:
        if not _is_guessed([*bundle[:-1], one], book):
            bundle[-1] = one
            return True
    return False


def _breaking(
    drawn: Sequence[AnsweredProgram], recorded: Sequence[AnsweredProgram], rng: random.Random
) -> list[AnsweredProgram]:
    """The programs that may stand in several calls because a guess does not answer them: drawn ones first, of these the
    ones with new data in all places, then those of held-out tests, unless they ask other code than what is missing:
    then they mostly hold what visible tests show."""
    again = [replace(one, recorded=True) for one in rng.sample(drawn, len(drawn))]
    again.sort(key=lambda one: not one.program.renewed)
    return [*again, *(one for one in recorded if not one.shown and not one.behind)]


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
    said = heard(expected.answers[index])
    return repr((kind, said, identities(program, expected.answers, index) or expected.errors.get(index, value)))
