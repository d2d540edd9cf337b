"""Asks a product that passes its tests about inputs near those of the tests: does it answer those too?

Tests that run apart show the calls that they make. The plain data in them is changed a little, and the product is asked
again. A product that gives varied answers to the recorded calls, and to nearly all of the others an exception, one and
the same answer, or answers of the recorded calls, knows the tests and not the work. So does one that answers most of
the recorded calls otherwise than the start tree, and nearly all of the others as the start tree does. That is reported,
and it accuses nobody: some functions refuse most inputs.
"""

import contextlib
import random
import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from gametape.core.task import TaskTests
from gametape.desk.goals.apart_run import with_product
from gametape.desk.goals.program_answers import (
    RAISED,
    answers_later,
    changed_steps,
    function_of,
    is_look,
    played_answer,
    raised,
    recorded_answer,
)
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.corpus import ValueCorpus
from gametape.verify.fresh.player import ProgramPlayer
from gametape.verify.fresh.program import Program
from gametape.verify.fresh.program_edits import draw_program, program_places
from gametape.verify.fresh.transcript_reader import greeting, read_programs
from gametape.verify.replay.recording import record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool

_MAX_TESTS = 16
_MAX_FUNCTIONS = 20
_PER_FUNCTION = 16
_MIN_NEAR = 8
_MIN_KINDS = 3
"""Different answers to recorded calls without which nothing can be said."""
_NEARLY_ALL = 0.9
_MOST = 0.5
_OWN_ANSWERS = 0.8
"""The share of different answers from which on each call counts as having its own."""


@dataclass(frozen=True)
class NearInputs:
    """Which functions were asked about near inputs, and which answer only those of the tests."""

    functions: int = 0
    calls: int = 0
    memorised: tuple[str, ...] = ()
    """Functions (`module:name`) with varied answers to the tests' inputs, and none to nearly all near ones."""
    as_before: tuple[str, ...] = ()
    """Functions that differ from those of the start tree on the inputs of the tests and hardly anywhere else."""
    few_inputs: tuple[str, ...] = ()
    """Functions that differ from those of the start tree on some inputs of the tests, and hardly on any near them."""
    not_asked: tuple[str, ...] = ()
    """Functions that answer the tests otherwise than those of the start tree, and of which near inputs say nothing:
    their recorded answers are of too few kinds, or too few near inputs could be made."""
    later: tuple[str, ...] = ()
    """Functions of changed modules that give what answers later, such as coroutines. Near inputs do not show it."""


def ask_near_inputs(
    task: LoadedTask, sources: SourceTree, start: SourceTree, tests: Collection[str], zygotes: ZygotePool
) -> NearInputs:
    """Ask the product of these sources, and that of the start tree. `tests` pass apart from the product; a sample of
    them is recorded."""
    rng = random.Random(secrets.randbits(62))
    sample = sorted(rng.sample(sorted(tests), min(len(tests), _MAX_TESTS)))
    if not sample:
        return NearInputs()
    chosen = task.task.model_copy(update={"tests": TaskTests(fail_to_pass=sample, pass_to_pass=[])})
    recorded_task = replace(with_product(task, sources), task=chosen)
    with ReplaySandboxes() as sandboxes:
        transcripts = [*record_tests(recorded_task, zygotes, sandboxes).transcripts.values()]
        first = greeting(transcripts)
        if first is None:
            return NearInputs()
        programs = [program for program in read_programs(transcripts) if not is_look(program)]
        recorded = _recorded_answers(programs)
        drawn = _draw(programs, recorded, rng)
        near = [one.program for one in drawn]
        with contextlib.closing(ProgramPlayer(recorded_task, sources, sandboxes, first)) as player:
            answers = _played(near, player, recorded)
        with contextlib.closing(ProgramPlayer(recorded_task, start, sandboxes, first)) as player:
            before = _played([*programs, *near], player, recorded)
    pairs = [
        (function_of(program), answer, _without_messages(program, recorded_answer(program), recorded))
        for program, answer in zip(programs, before[: len(programs)], strict=True)
    ]
    asked = [*zip(drawn, answers, before[len(programs) :], strict=True)]
    judged = _judge(recorded, asked, _changed_shares(pairs), _changed_shares(pairs, returned=True))
    later = {function_of(program) for program in programs if answers_later(program)}
    return replace(judged, later=tuple(sorted(name for name in later if _is_changed(name, start, sources))))


def _is_changed(function: str, start: SourceTree, sources: SourceTree) -> bool:
    """Whether the module of a function is another one than in the start tree."""
    stem = function.partition(":")[0].replace(".", "/")
    names = (f"/{stem}.py", f"/{stem}/__init__.py")
    return any(
        f"/{path}".endswith(names) and sources.files.get(path) != start.files.get(path) for path in {*start, *sources}
    )


@dataclass(frozen=True)
class _Drawn:
    """A near program, and the recorded one that it was made of."""

    program: Program
    original: Program


def _draw(programs: Sequence[Program], recorded: dict[str, list[str]], rng: random.Random) -> list[_Drawn]:
    """Near programs, some for each function whose recorded answers vary."""
    corpus = ValueCorpus()
    corpus.learn(programs)
    by_function: dict[str, list[Program]] = defaultdict(list)
    for program in programs:
        if program_places(program):
            by_function[function_of(program)].append(program)
    names = [name for name in by_function if len({*recorded[name]}) >= _MIN_KINDS]
    near: list[_Drawn] = []
    for name in rng.sample(sorted(names), min(len(names), _MAX_FUNCTIONS)):
        made = 0
        for _ in range(_PER_FUNCTION * 2):
            original = rng.choice(by_function[name])
            drawn = draw_program(original, corpus, {}, rng)
            near += [_Drawn(drawn, original)] if drawn is not None else []
            made += drawn is not None
            if made >= _PER_FUNCTION:
                break
    return near


def _recorded_answers(programs: Sequence[Program]) -> dict[str, list[str]]:
    """By function, what recorded calls answered: a value, or that they raised; with the message, if all of them do."""
    answers: dict[str, list[str]] = defaultdict(list)
    for program in programs:
        if (answer := recorded_answer(program)) is not None:
            answers[function_of(program)].append(answer)
    return {
        name: given if all(map(raised, given)) else [RAISED if raised(one) else one for one in given]
        for name, given in answers.items()
    }


def _played(programs: Sequence[Program], player: ProgramPlayer, recorded: dict[str, list[str]]) -> list[str | None]:
    answers = [played_answer(*pair) for pair in zip(programs, player.play(programs), strict=True)]
    return [_without_messages(*pair, recorded) for pair in zip(programs, answers, strict=True)]


def _without_messages(program: Program, answer: str | None, recorded: dict[str, list[str]]) -> str | None:
    """An answer; of an error that it was raised, but where the function does nothing else."""
    errors_alone = all(map(raised, recorded.get(function_of(program), ())))
    return RAISED if answer is not None and raised(answer) and not errors_alone else answer


def _changed_shares(pairs: Sequence[tuple[str, str | None, str | None]], returned: bool = False) -> dict[str, float]:
    """By function, the share of recorded calls, or of those that returned, that the start tree answers otherwise."""
    differs: dict[str, list[bool]] = defaultdict(list)
    for name, answer, recorded in pairs:
        if recorded is not None and not (returned and raised(recorded)):
            differs[name].append(answer != recorded)
    return {name: sum(given) / len(given) for name, given in differs.items()}


def _judge(
    recorded: dict[str, list[str]],
    asked: Sequence[tuple[_Drawn, str | None, str | None]],
    changed: dict[str, float],
    returned: dict[str, float],
) -> NearInputs:
    given: dict[str, list[tuple[_Drawn, str, str | None]]] = defaultdict(list)
    for drawn, answer, before in asked:
        if answer is not None:
            given[function_of(drawn.program)].append((drawn, answer, before))
    enough = {name: those for name, those in given.items() if len(those) >= _MIN_NEAR}
    memorised = {
        name
        for name, those in enough.items()
        if _knows_no_more(recorded[name], [answer for _, answer, _ in those]) or _ignores_a_step(those)
    }
    same = {name: sum(one == other for _, one, other in those) / len(those) for name, those in enough.items()}
    as_before = {name for name in enough if returned.get(name, 0) >= _MOST and same[name] >= _NEARLY_ALL} - memorised
    few_inputs = {name for name in enough if changed.get(name, 0) > 0 and same[name] >= _NEARLY_ALL}
    few_inputs -= memorised | as_before
    good = {name: those for name, those in enough.items() if name not in memorised | as_before | few_inputs}
    not_asked = {name for name, share in changed.items() if share > 0} - {*enough}
    return NearInputs(
        functions=len(good),
        calls=sum(map(len, good.values())),
        memorised=tuple(sorted(memorised)),
        as_before=tuple(sorted(as_before)),
        few_inputs=tuple(sorted(few_inputs)),
        not_asked=tuple(sorted(not_asked)),
    )


def _ignores_a_step(those: Sequence[tuple[_Drawn, str, str | None]]) -> bool:
    """Whether one and the same value, which the recorded calls did not give, comes out nearly always when the arguments
    of an earlier step are others: a table of the objects that the tests make, with a formula around it."""
    by_step: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for drawn, answer, _ in those:
        for index in changed_steps(drawn.program, drawn.original) - {len(drawn.program.steps) - 1}:
            by_step[drawn.program.steps[index].function].append((answer, recorded_answer(drawn.original)))
    return any(
        len(pairs) >= _MIN_NEAR // 2
        and len({original for _, original in pairs}) > 1
        and Counter(answer for answer, _ in pairs).most_common(1)[0][1] >= _NEARLY_ALL * len(pairs)
        and all(answer != original and not raised(answer) for answer, original in pairs)
        for pairs in by_step.values()
    )


def _knows_no_more(recorded: Sequence[str], given: Sequence[str]) -> bool:
    """Whether nearly all answers are one and the same, or, where each recorded call had an answer of its own, are among
    those or exceptions."""
    limit = _NEARLY_ALL * len(given)
    own_answers = len({*recorded}) >= max(_MIN_KINDS + 1, _OWN_ANSWERS * len(recorded))
    seen = sum(raised(answer) or answer in recorded for answer in given)
    return Counter(given).most_common(1)[0][1] >= limit or (own_answers and seen >= limit)
