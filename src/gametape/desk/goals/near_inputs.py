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
from typing import Any

from gametape.core.task import TaskTests
from gametape.desk.goals.apart_run import with_product
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.corpus import ValueCorpus
from gametape.verify.fresh.player import ProgramPlayer
from gametape.verify.fresh.program import Program
from gametape.verify.fresh.program_edits import draw_program, program_places
from gametape.verify.fresh.transcript_reader import greeting, read_programs
from gametape.verify.in_sandbox import wire_protocol as words
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
_RAISED = "raised"


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
        programs = read_programs(transcripts)
        near = _draw(programs, rng)
        with contextlib.closing(ProgramPlayer(recorded_task, sources, sandboxes, first)) as player:
            answers = _answers(near, player.play(near))
        with contextlib.closing(ProgramPlayer(recorded_task, start, sandboxes, first)) as player:
            answers_before = _answers([*programs, *near], player.play([*programs, *near]))
    pairs = [*zip(programs, answers_before[: len(programs)], strict=True)]
    changed = _changed_shares(pairs)
    returned = _changed_shares([pair for pair in pairs if _returns(pair[0])])
    return _judge(_recorded_answers(programs), near, answers, answers_before[len(programs) :], changed, returned)


def _draw(programs: Sequence[Program], rng: random.Random) -> list[Program]:
    """Near programs, some for each function whose recorded answers vary."""
    corpus = ValueCorpus()
    corpus.learn(programs)
    by_function: dict[str, list[Program]] = defaultdict(list)
    for program in programs:
        if program_places(program):
            by_function[program.steps[-1].function].append(program)
    varied = _recorded_answers(programs)
    names = [name for name in by_function if len({*varied[name]}) >= _MIN_KINDS]
    near: list[Program] = []
    for name in rng.sample(sorted(names), min(len(names), _MAX_FUNCTIONS)):
        for _ in range(_PER_FUNCTION * 2):
            drawn = draw_program(rng.choice(by_function[name]), corpus, {}, rng)
            near += [drawn] if drawn is not None else []
            if sum(program.steps[-1].function == name for program in near) >= _PER_FUNCTION:
                break
    return near


def _recorded_answers(programs: Sequence[Program]) -> dict[str, list[str]]:
    """By function, what recorded calls answered: a value, or that they raised."""
    answers: dict[str, list[str]] = defaultdict(list)
    for program in programs:
        step = program.steps[-1]
        if step.recorded:
            answers[step.function].append(_answer(step.recorded))
    return answers


def _answer(frame: Sequence[Any]) -> str:
    return repr(frame[2]) if frame[0] == words.RETURN else _RAISED


def _answers(programs: Sequence[Program], played: Sequence[PlayedProgram]) -> list[str | None]:
    """The last answer of each program as text; None where it did not come to its end."""
    answers: list[str | None] = []
    for program, one in zip(programs, played, strict=True):
        if len(one.answers) == len(program.steps) and one.is_whole:
            answers.append(_answer(one.answers[-1]))
        else:
            answers.append(None)
    return answers


def _returns(program: Program) -> bool:
    recorded = program.steps[-1].recorded
    return bool(recorded) and recorded[0] == words.RETURN


def _changed_shares(pairs: Sequence[tuple[Program, str | None]]) -> dict[str, float]:
    """By function, the share of recorded calls that the start tree answers otherwise. Each comes with that answer."""
    differs: dict[str, list[bool]] = defaultdict(list)
    for program, answer in pairs:
        step = program.steps[-1]
        if step.recorded:
            differs[step.function].append(answer != _answer(step.recorded))
    return {name: sum(given) / len(given) for name, given in differs.items()}


def _judge(
    recorded: dict[str, list[str]],
    near: Sequence[Program],
    answers: Sequence[str | None],
    before: Sequence[str | None],
    changed: dict[str, float],
    returned: dict[str, float],
) -> NearInputs:
    given: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for program, answer, other in zip(near, answers, before, strict=True):
        if answer is not None:
            given[program.steps[-1].function].append((answer, other))
    enough = {name: pairs for name, pairs in given.items() if len(pairs) >= _MIN_NEAR}
    memorised = {name for name, pairs in enough.items() if _knows_no_more(recorded[name], [one for one, _ in pairs])}
    same = {name: sum(one == other for one, other in pairs) / len(pairs) for name, pairs in enough.items()}
    as_before = {name for name in enough if returned.get(name, 0) >= _MOST and same[name] >= _NEARLY_ALL} - memorised
    few_inputs = {name for name in enough if changed.get(name, 0) > 0 and same[name] >= _NEARLY_ALL}
    few_inputs -= memorised | as_before
    good = {name: pairs for name, pairs in enough.items() if name not in memorised | as_before | few_inputs}
    not_asked = {name for name, share in changed.items() if share > 0} - {*enough}
    return NearInputs(
        functions=len(good),
        calls=sum(map(len, good.values())),
        memorised=tuple(sorted(memorised)),
        as_before=tuple(sorted(as_before)),
        few_inputs=tuple(sorted(few_inputs)),
        not_asked=tuple(sorted(not_asked)),
    )


def _knows_no_more(recorded: Sequence[str], given: Sequence[str]) -> bool:
    """Whether nearly all answers are one and the same, or, where each recorded call had an answer of its own, are among
    those or exceptions."""
    limit = _NEARLY_ALL * len(given)
    own_answers = len({*recorded}) >= max(_MIN_KINDS + 1, _OWN_ANSWERS * len(recorded))
    seen = sum(answer == _RAISED or answer in recorded for answer in given)
    return Counter(given).most_common(1)[0][1] >= limit or (own_answers and seen >= limit)
