"""The source of fresh calls for one task: what is known about its programs, and sets of calls with their answers.

Three workers are kept: two with the reference, in processes with hash seeds of their own, and one with the starting
tree. A drawn program counts if both references answer it alike, with a value or with an exception that the function's
recorded calls show, if the starting tree answers otherwise, and if the recorded program has another answer.
"""

import random
import secrets
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gametape.record.loaded_task import LoadedTask
from gametape.verify.expected_errors import errors_waited_for
from gametape.verify.fresh.agreement import lineage
from gametape.verify.fresh.bundles import AnsweredProgram, FreshCall, compose_calls
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.corpus import Place, ValueCorpus
from gametape.verify.fresh.differences import differing_steps
from gametape.verify.fresh.effects import effects_listened_to
from gametape.verify.fresh.guessable import is_guessable, told_parts
from gametape.verify.fresh.guesses import GuessBook
from gametape.verify.fresh.named_objects import named_answers, with_names
from gametape.verify.fresh.object_fields import given_fields, with_questions, without_comparisons
from gametape.verify.fresh.player import ProgramPlayer
from gametape.verify.fresh.program import Program, ProgramStep
from gametape.verify.fresh.program_edits import draw_program, program_places, with_other_orders
from gametape.verify.fresh.renewal import renew_program
from gametape.verify.fresh.strategies import reservoir
from gametape.verify.fresh.transcript_reader import greeting, read_programs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.machine_load import slowdown
from gametape.verify.missing_functions import find_missing_functions
from gametape.verify.replay.recording import reference_sources
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.transcript import StandIn, Transcript

_SLOW_SECONDS, _SLOW_FACTOR = 0.02, 20.0
"""A program that takes the reference longer than this, and so many times longer than most, is left out; on a busy
machine it may take longer."""
_PREPARING_SECONDS, _DRAWING_SECONDS = 180.0, 20.0
"""How long programs may take together when they are recorded ones, and when they are drawn ones."""
_ROUNDS = 6
_ROUNDS_FOR_TURNS = 3
"""So many of these are made for functions that have fewer calls than their share, where there are enough calls."""
_MOST_PROGRAMS = 400
_HOPELESS = 60
"""A function of which so many drawn programs were tried, and none counted, is not tried again."""
_START_SURE, _START_ASKED = 4, 0.1
"""After so many draws of a program that the starting tree answered otherwise it is asked only this often."""
_CALLS_OF_PROGRAMS = 8
"""Calls of a verdict where each starts a program, which takes a hundred times longer than a call."""
_RENEWED, _RENEWED_BEHIND = 0.25, 0.85
"""How often all data of a program is new, and where what is missing is reached through other code."""
_ENOUGH_RENEWED = 12
"""Where there are so many, the others are not asked."""
_MOST_PLACES = 40
_DRAWN_VALUES = 24


@dataclass
class KnownProgram:
    """A recorded program that the reference answers as recorded."""

    program: Program
    answers: PlayedProgram
    decisive: tuple[int, ...]
    """The steps that the starting tree answers otherwise."""
    guessable: bool = False
    """Whether its answers are such as few are: a drawn program then counts whether or not it keeps them, or the answer
    to each would be known to be another one."""
    shown: bool = False
    """Whether a visible test makes the same calls."""
    behind: bool = False
    """Whether what is missing is none of the functions that it asks: they reach it."""
    tried: int = 0
    useful: int = 0
    start_differed: int = 0
    start_agreed: int = 0

    @property
    def function(self) -> str:
        """The first function whose answer the starting tree does not give."""
        return self.program.steps[self.decisive[0]].function

    @property
    def weight(self) -> float:
        """Higher for a program that gave useful ones, lower for a long one."""
        return ((self.useful + 1) / (self.tried + 2)) ** 2 / (8 + len(self.program.steps))

    @property
    def needs_start(self) -> bool:
        """Whether the starting tree must be asked: it need not where what is missing was never found there."""
        return self.start_agreed > 0 or self.start_differed < _START_SURE


@dataclass
class FreshSource:
    """Draws sets of fresh calls. Not thread-safe."""

    transcripts: Sequence[Transcript]
    loaded_task: LoadedTask
    sandboxes: ReplaySandboxes
    calls: int
    seed: int = field(default_factory=lambda: secrets.randbits(62))

    def __post_init__(self) -> None:
        self.corpus = ValueCorpus()
        self.known: dict[str, list[KnownProgram]] = {}
        self._book = GuessBook()
        self._errors: dict[str, set[str]] = defaultdict(set)
        self._awaited_errors = frozenset(errors_waited_for(self.loaded_task.suite.files.values()))
        self._drawn: dict[Place, list[object]] = {}
        self.greeting = greeting(self.transcripts)
        self._players: dict[str, ProgramPlayer] = {}
        self._is_prepared = False

    def prepare(self) -> None:
        """Find the programs that can be changed and that exercise the feature, once."""
        if self._is_prepared:
            return
        self._is_prepared = True
        listens = effects_listened_to(self.loaded_task.suite.files.values())
        programs = [replace(program, listens=listens) for program in read_programs(self.transcripts)]
        self.corpus.learn(programs)
        rng = random.Random(self.seed)
        changeable = [program for program in programs if program_places(program)]
        if len(changeable) > _MOST_PROGRAMS:
            changeable = rng.sample(changeable, _MOST_PROGRAMS)
        visible = set(self.loaded_task.task.tests.visible)
        seen = read_programs([transcript for transcript in self.transcripts if transcript.test in visible])
        shown = {program.key for program in seen}
        is_shown = [program.key in shown for program in changeable]
        by_fields = self._by_fields(changeable)
        is_shown += [False] * len(by_fields)
        names = named_answers(self.transcripts)
        changeable = [*(with_names(with_other_orders(program, rng), names) for program in changeable), *by_fields]
        answers = self._play("a", changeable, preparing=True)
        untouched = self._play("start", changeable, preparing=True)
        slow = _slow_ones(changeable, answers)
        missing = frozenset(item.qualname for item in find_missing_functions(self.loaded_task))
        for index, (program, answer, start) in enumerate(zip(changeable, answers, untouched, strict=True)):
            self._learn_errors(program, answer)
            recorded = PlayedProgram([*map(_as_recorded, program.steps, answer.answers)], answer.errors)
            nameless = replace(program, look_ups=())  # no test looked all of them up
            if not answer.is_whole or index in slow or differing_steps(nameless, recorded, answer):
                continue  # it takes long, or needs more of its test than its own calls
            decisive = differing_steps(program, answer, start)
            if decisive:
                behind = not any(_names(program.steps[at], missing) for at in decisive)
                known = KnownProgram(
                    program, answer, decisive, _is_two_valued(program, answer, decisive), is_shown[index], behind
                )
                self.known.setdefault(known.function, []).append(known)
                self._book.learn(program, answer, decisive)
        for known in (one for some in self.known.values() for one in some):
            self._add_errors(known.answers)
        if self.known and all(one.program.starts_programs for some in self.known.values() for one in some):
            self.calls = min(self.calls, _CALLS_OF_PROGRAMS)
        self._drawn = reservoir(self.corpus, self._places(rng), _DRAWN_VALUES, self.seed)

    def _by_fields(self, programs: Sequence[Program]) -> list[Program]:
        """Programs that compare objects, with questions for the objects' fields in place of the comparisons."""
        fields = given_fields(self.loaded_task)
        pairs = [(program, asked) for program in programs if (asked := with_questions(program, fields))]
        asked_programs = [asked for _, asked in pairs]
        answers, untouched = (self._play(name, asked_programs, preparing=True) for name in ("a", "start"))
        found = map(without_comparisons, *zip(*pairs, strict=True), answers, untouched) if pairs else ()
        return [program for program in found if program]

    def _places(self, rng: random.Random) -> list[Place]:
        places = sorted(
            {place for known in self.known.values() for one in known for _, place, _ in program_places(one.program)},
            key=repr,
        )
        return rng.sample(places, _MOST_PLACES) if len(places) > _MOST_PLACES else places

    def _learn_errors(self, program: Program, played: PlayedProgram) -> None:
        for index, names in played.errors.items():
            self._errors[program.steps[index].function] |= {names[0]}

    def _add_errors(self, played: PlayedProgram) -> None:
        """Add what is known of the task's errors to answers of the reference."""
        played.known_errors = frozenset[str]().union(*self._errors.values())
        played.awaited_errors = self._awaited_errors

    def draw(self, seed: int, calls: int | None = None) -> list[FreshCall]:
        """A set of answered calls; the same one for the same seed and the same history of draws. Prepares what is not
        prepared."""
        self.prepare()
        rng = random.Random(seed)
        wanted = self.calls if calls is None else calls
        drawn: list[AnsweredProgram] = []
        keys: set[str] = set()
        answered_of: Counter[str] = Counter()
        for number in range(_ROUNDS):
            functions = self._hopeful()
            if not functions:
                break
            missing = wanted - len(self._calls(drawn, wanted, rng))
            share = -(-wanted // len(functions))
            behind = [function for function in functions if answered_of[function] < share]
            if missing <= 0 and (not behind or number >= _ROUNDS_FOR_TURNS):
                break
            needed = self._needed(max(missing, sum(share - answered_of[function] for function in behind)))
            for answered in self._answered(self._candidates(rng, needed, behind or functions), rng):
                if answered.key not in keys:
                    keys.add(answered.key)
                    answered_of[answered.function] += 1
                    drawn.append(answered)
        return self._calls(drawn, wanted, rng)

    def _hopeful(self) -> list[str]:
        """The functions of which drawn programs count, as far as is known."""
        return sorted(
            function
            for function, known in self.known.items()
            if any(one.useful for one in known) or sum(one.tried for one in known) < _HOPELESS
        )

    def _calls(self, drawn: list[AnsweredProgram], wanted: int, rng: random.Random) -> list[FreshCall]:
        """As many calls of these programs as wanted."""
        renewed = [one for one in drawn if one.program.renewed or not one.behind]
        drawn = renewed if len(renewed) >= _ENOUGH_RENEWED else drawn
        measured = [replace(one, guesses=self._book.right(one.program, one.expected, one.decisive)) for one in drawn]

        def recorded(function: str) -> list[AnsweredProgram]:
            return [
                AnsweredProgram(
                    known.program,
                    known.answers,
                    function,
                    known.guessable,
                    kept=True,
                    recorded=True,
                    shown=known.shown,
                    decisive=known.decisive,
                    behind=known.behind,
                    guesses=self._book.right(known.program, known.answers, known.decisive),
                )
                for known in self.known[function]
            ]

        return compose_calls(measured, recorded, self._book, wanted, rng)

    def _needed(self, missing: int) -> int:
        """How many programs are drawn for so many calls, as far as experience tells."""
        everything = [one for function in self._hopeful() for one in self.known[function]]
        useful, tried = sum(one.useful for one in everything), sum(one.tried for one in everything)
        return min(4 * missing, int(missing * (tried + 3) / (useful + 2))) + 2

    def _candidates(self, rng: random.Random, count: int, functions: list[str]) -> list[tuple[KnownProgram, Program]]:
        """Drawn programs, the functions in turn."""
        candidates = []
        functions = rng.sample(functions, len(functions))
        for number in range(count * 3):
            known = self.known[functions[number % len(functions)]]
            chosen = rng.choices(known, [one.weight for one in known])[0]
            renew = rng.random() < (_RENEWED_BEHIND if chosen.behind else _RENEWED)
            make = renew_program if renew else draw_program
            drawn = make(chosen.program, self.corpus, self._drawn, rng)
            if drawn is not None:
                candidates.append((chosen, drawn))
            if len(candidates) == count:
                break
        return candidates

    def _answered(self, candidates: list[tuple[KnownProgram, Program]], rng: random.Random) -> list[AnsweredProgram]:
        """Those of the candidates that count."""
        for known, _ in candidates:
            known.tried += 1
        programs = [program for _, program in candidates]
        answers = self._play("a", programs)
        slow = _slow_ones(programs, answers)
        rest = [
            (known, program, played)
            for index, ((known, program), played) in enumerate(zip(candidates, answers, strict=True))
            if index not in slow and self._counts(known, program, played)
        ]
        told = self._told(rest, rng)
        rng.shuffle(told)
        again = self._play("b", [program for _, program, _, _ in told])
        answered = []
        for (known, program, played, decisive), second in zip(told, again, strict=True):
            if differing_steps(program, played, second):
                continue
            known.useful += 1
            self._add_errors(played)
            guessable = all(
                is_guessable(
                    program.steps[index],
                    played.answers[index],
                    self.corpus.recorded_answers.get(program.steps[index].function, set()),
                    program.steps_behind(index),
                )
                for index in decisive
            )
            kept = not differing_steps(program, known.answers, played)
            self._book.learn(program, played, decisive, drawn=True)
            answered.append(
                AnsweredProgram(
                    program, played, known.function, guessable, kept, decisive=decisive, behind=known.behind
                )
            )
        return answered

    def _told(
        self, answered: list[tuple[KnownProgram, Program, PlayedProgram]], rng: random.Random
    ) -> list[tuple[KnownProgram, Program, PlayedProgram, tuple[int, ...]]]:
        """Those that the starting tree answers otherwise, with the steps where it does."""
        asked, told = [], []
        for one in answered:
            if one[0].needs_start or rng.random() < _START_ASKED:
                asked.append(one)
            else:
                told.append((*one, one[0].decisive))
        for (known, program, played), start in zip(
            asked, self._play("start", [program for _, program, _ in asked]), strict=True
        ):
            decisive = differing_steps(program, played, start)
            if decisive:
                known.start_differed += 1
                told.append((known, program, played, decisive))
            else:
                known.start_agreed += 1
        return told

    def _counts(self, known: KnownProgram, program: Program, played: PlayedProgram) -> bool:
        if not played.is_whole:
            return False
        for index, names in played.errors.items():
            if not set(lineage(names)) & self._errors[program.steps[index].function]:
                return False
        return known.guessable or bool(differing_steps(program, known.answers, played))

    def _play(self, name: str, programs: Sequence[Program], preparing: bool = False) -> list[PlayedProgram]:
        """Play in one of the three workers."""
        if name not in self._players:
            task = self.loaded_task.task
            start = self.loaded_task.start.under(task.source_paths)
            sources = start if name == "start" else reference_sources(self.loaded_task)
            self._players[name] = ProgramPlayer(
                self.loaded_task, sources, self.sandboxes, self.greeting or (), "reference", new=True
            )
        player = self._players[name]
        if preparing:
            return player.play_apart(programs, _PREPARING_SECONDS)
        return player.play_once(programs, _DRAWING_SECONDS)

    def close(self) -> None:
        for player in self._players.values():
            player.close()
        self._players.clear()


def _names(step: ProgramStep, missing: frozenset[str]) -> bool:
    """Whether a step asks one of the missing functions, or makes an object of a class whose methods are missing."""
    name = step.function.rpartition(":")[2]
    return name in missing or f"{name}.__init__" in missing or step.operation == words.RUN_PROGRAM


def _as_recorded(step: ProgramStep, answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The recorded answer of a step; where an object was compared with more than the test did, with the rest, and for a
    question that no test asked the answer itself."""
    if not step.recorded:
        return answer
    both = (step.recorded, answer)
    if step.operation != words.EQUALS or any(len(each) < 3 or type(each[2]) is not list for each in both):
        return step.recorded
    return (*step.recorded[:2], [*step.recorded[2], *answer[2][len(step.recorded[2]) :]], *step.recorded[3:])


def _slow_ones(programs: Sequence[Program], played: Sequence[PlayedProgram]) -> set[int]:
    """The programs that take long among those of their kind: starting a program of the system takes longer than a
    call."""
    slow: set[int] = set()
    for starts in (False, True):
        seconds = {at: played[at].seconds for at, one in enumerate(programs) if one.starts_programs is starts}
        if seconds:
            limit = max(_SLOW_SECONDS * slowdown(), _SLOW_FACTOR * statistics.median(seconds.values()))
            slow |= {at for at, taken in seconds.items() if taken > limit}
    return slow


def _is_two_valued(program: Program, answers: PlayedProgram, decisive: tuple[int, ...]) -> bool:
    """Whether all that counts in a program is whether something holds, or whether it is refused."""
    return all(
        program.steps[index].is_comparison
        or answers.answers[index][0] == words.RAISE
        or (type(answers.answers[index][2]) in (bool, type(None)) and len(told_parts(answers.answers[index])) == 1)
        or type(answers.answers[index][2]) is StandIn
        for index in decisive
    )
