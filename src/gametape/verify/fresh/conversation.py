"""Play programs against a worker: requests out, answers back, with objects found by their place in earlier answers.

To the reference, steps of different programs are sent together, which takes less time. An attempt gets one call after
the other, as in a replay: what waits in its buffer does not tell which of the two it is. What comes back from it is
hostile: it is decoded as data, and each wait has an end.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gametape.verify.fresh.effects import said
from gametape.verify.fresh.program import (
    ITERABLE,
    OBJECT,
    STRUCTURAL,
    CallbackReference,
    ObjectReference,
    Program,
    ProgramStep,
    RecordedCallback,
    part_at,
    what_counts,
)
from gametape.verify.fresh.transcript_reader import callback_key
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_channel import pack_frame
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.replay.connection import ConnectionOver, FrameConnection
from gametape.verify.replay.hostile_frame import is_number, read_answer
from gametape.verify.replay.script import NEXT_SESSION
from gametape.verify.replay.transcript import StandIn, write_frame

_MOST_CALLBACKS = 2000
_EVERY_LEVEL = 1
_MOST_BASES = 16
_LONGEST_NAME = 200
_MOST_BYTES = 1 << 17
"""The longest answer. Programs are made of shorter ones."""
_NO_ANSWER = StandIn(words.ERROR_OF_TEST, ("RuntimeError", ("no answer is known",), None, 0))
UNREACHED: tuple[Any, ...] = ("unreached",)
"""In place of an answer: the step needs an object that an earlier answer did not contain."""
LOST: tuple[Any, ...] = ("lost",)
"""In place of an answer: the worker died, hung or sent what no worker sends."""


@dataclass
class PlayedProgram:
    """The answers to a program's steps, and how long the worker took for them."""

    answers: list[tuple[Any, ...]] = field(default_factory=list)
    errors: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """For each step that raised, the names of the exception's class and of its bases, the class first."""
    seconds: float = 0.0
    iterators: dict[ObjectReference, Iterator[Any]] = field(default_factory=dict)
    """Sequences that came where a step asks an iterator for its next element."""
    known_errors: frozenset[str] = frozenset()
    """In answers of the reference: the names of all errors that its recorded calls raise."""
    awaited_errors: frozenset[str] = frozenset()
    """In answers of the reference: the names of the errors that the tests wait for."""
    unknown_callback: bool = False
    """Whether a function of the test was called with arguments for which no answer is recorded."""

    @property
    def is_whole(self) -> bool:
        return not self.unknown_callback and UNREACHED not in self.answers and LOST not in self.answers


class UnknownCallback(Exception):
    """A function of the test was called in a way that was not recorded."""


class ProgramConversation:
    """One session with a worker, in which any number of programs are played.

    Its methods raise TimeoutError after the deadline, and ConnectionOver when the worker is gone or sends what none
    sends.
    """

    def __init__(self, connection: FrameConnection, deadline: float, greeting: tuple[Any, ...]) -> None:
        self._connection = connection
        self._deadline = deadline
        self._next_request = 0
        self._next_callback = 0
        self._shared: dict[str, tuple[Any, ...]] = {}
        self._lineages: dict[int, tuple[str, ...]] = {}
        connection.send(NEXT_SESSION)
        self._ask(words.HELLO, greeting)

    def play(self, programs: Sequence[Program], played: Sequence[PlayedProgram], in_waves: bool = True) -> None:
        """Play programs and add to `played` as answers come: in waves, a step of each at once, or one call after the
        other, as recorded tests are replayed."""
        if any("records" in program.listens for program in programs):
            self._ask(words.SURROUND, ({"levels": {"root": _EVERY_LEVEL}},))
        together = [pair for pair in zip(programs, played, strict=True) if in_waves and not pair[0].callbacks]
        while together:
            self._play_wave(together)
            together = [pair for pair in together if len(pair[1].answers) < len(pair[0].steps)]
        for program, one in zip(programs, played, strict=True):
            if program.callbacks or not in_waves:
                self._play_alone(program, one)

    def _play_wave(self, waiting: list[tuple[Program, PlayedProgram]]) -> None:
        """The next step of each program."""
        sent: list[tuple[int, int, Program, PlayedProgram]] = []
        bodies: list[bytes] = []
        for program, played in waiting:
            while len(played.answers) < len(program.steps):
                step = program.steps[len(played.answers)]
                if step.operation in STRUCTURAL and not bodies:
                    played.answers.append(self._look_up(step))
                elif step.operation in STRUCTURAL and _shared_key(step) in self._shared:
                    played.answers.append(self._shared[_shared_key(step)])
                else:
                    break
            else:
                continue
            step = program.steps[len(played.answers)]
            if step.operation in STRUCTURAL:
                continue  # its turn comes with the next wave
            try:
                fields = _resolved(step.fields, played, {})
            except LookupError:
                played.answers.append(_without_worker(step, played))
                continue
            number, body = self._request(step.operation, fields)
            bodies.append(pack_frame(body))
            sent.append((number, step.operation, program, played))
        if bodies:
            self._connection.send(b"".join(bodies))
        for number, operation, program, played in sent:
            began = time.perf_counter()
            answer = self._answer(number)
            played.seconds += time.perf_counter() - began
            self._keep(program, played, what_counts(operation, answer))

    def _look_up(self, step: ProgramStep) -> tuple[Any, ...]:
        """The answer to a look-up; asked once where it cannot change."""
        key = _shared_key(step)
        known = self._shared.get(key)
        if known is not None:
            return known
        answer = self._ask(step.operation, step.fields)
        value = answer[2]
        if step.operation == words.IMPORT or (isinstance(value, StandIn) and value.kind != words.HANDLE):
            self._shared[key] = answer
        return answer

    def _play_alone(self, program: Program, played: PlayedProgram) -> None:
        """One program, with nothing else on its way: a function of the test may be called."""
        callbacks = {number: self._next_callback + at for at, number in enumerate(sorted(program.callbacks))}
        self._next_callback += len(callbacks)
        functions = {callbacks[number]: CallbackPlayer(program.callbacks[number]) for number in callbacks}
        for step in program.steps:
            if step.operation in STRUCTURAL:
                played.answers.append(self._look_up(step))
                continue
            try:
                fields = _resolved(step.fields, played, callbacks)
            except LookupError:
                played.answers.append(_without_worker(step, played))
                continue
            began = time.perf_counter()
            number, body = self._request(step.operation, fields)
            self._connection.send(pack_frame(body))
            answer = self._answer(number, functions, played, callbacks)
            played.seconds += time.perf_counter() - began
            self._keep(program, played, what_counts(step.operation, answer))

    def _keep(self, program: Program, played: PlayedProgram, answer: tuple[Any, ...]) -> None:
        if answer[0] == words.RAISE and isinstance(answer[2], StandIn) and answer[2].kind == words.ERROR:
            reference = answer[2].payload[0]
            name = f"#{reference}" if type(reference) is int else reference.rpartition(":")[2].lstrip("#")
            played.errors[len(played.answers)] = (name[:_LONGEST_NAME],)
        if answer[4] and len(answer[4]) > 2:
            is_all = answer[0] == words.RETURN and answer[2] is None
            heard = said(program, answer[4][2]) if program.listens and is_all else None
            answer = (*answer[:4], (*answer[4][:2], heard) if heard else answer[4][:2])
        played.answers.append(answer)

    def name_errors(self, played: Sequence[PlayedProgram]) -> None:
        """Put the names of classes in place of their numbers."""
        for one in played:
            for step, (name, *_) in one.errors.items():
                if name[:1] == "#":
                    one.errors[step] = self._lineage(int(name[1:]))

    def _lineage(self, number: int) -> tuple[str, ...]:
        if number in self._lineages:
            return self._lineages[number]
        names: list[str] = []
        waiting: list[Any] = [number]
        while waiting and len(names) < _MOST_BASES:
            reference = waiting.pop(0)
            if type(reference) is str:
                names.append(reference.rpartition(":")[2])
                continue
            answer = self._ask(words.DESCRIBE, (reference,))
            described = answer[2] if answer[0] == words.RETURN and type(answer[2]) is dict else {}
            name = described.get("name")
            names.append(name[:_LONGEST_NAME] if type(name) is str else "")
            bases = described.get("bases", ())
            waiting += [base for base in bases if type(base) is str or is_number(base)] if type(bases) is tuple else []
        known = () if waiting else tuple(names)  # a class with more bases than a program needs is no known one
        self._lineages[number] = known
        return known

    def _ask(self, operation: int, fields: tuple[Any, ...]) -> tuple[Any, ...]:
        number, body = self._request(operation, fields)
        self._connection.send(pack_frame(body))
        return self._answer(number)

    def _request(self, operation: int, fields: tuple[Any, ...]) -> tuple[int, bytes]:
        number = self._next_request
        self._next_request += 1
        return number, write_frame((words.REQUEST, number, operation, fields, ()))

    def _answer(
        self,
        number: int,
        functions: "dict[int, CallbackPlayer] | None" = None,
        played: PlayedProgram | None = None,
        callbacks: dict[int, int] | None = None,
    ) -> tuple[Any, ...]:
        """The answer to a request, after the callbacks that come before it."""
        for _ in range(_MOST_CALLBACKS):
            message = self._receive()
            if message[0] != words.CALLBACK:
                if message[1] != number or message[0] not in (words.RETURN, words.SAME, words.RAISE):
                    raise ConnectionOver("an answer to something that was not asked")
                return message
            if played is None or functions is None or message[2] not in functions:
                raise ConnectionOver("a callback that was never given")
            self._connection.send(pack_frame(_called_back(message, functions[message[2]], played, callbacks or {})))
        raise ConnectionOver(f"more than {_MOST_CALLBACKS} callbacks")

    def _receive(self) -> tuple[Any, ...]:
        try:
            return read_answer(self._connection.receive(self._deadline), _MOST_BYTES)
        except WireError as error:
            raise ConnectionOver(str(error)) from None


def _without_worker(step: ProgramStep, played: PlayedProgram) -> tuple[Any, ...]:
    """The answer to a step whose object is missing: the next element of a sequence, where it should be an iterator."""
    reference = step.fields[0]
    if step.operation != words.NEXT or type(reference) is not ObjectReference or reference.path[-1] != OBJECT:
        return UNREACHED
    if reference not in played.iterators:
        try:
            value = part_at(played.answers[reference.step], reference.path[:-1])
        except LookupError:
            return UNREACHED
        if type(value) not in ITERABLE:
            return UNREACHED
        played.iterators[reference] = iter(value)
    for element in played.iterators[reference]:
        return (words.RETURN, 0, element, (), None)
    played.errors[len(played.answers)] = ("StopIteration",)
    return (words.RAISE, 0, StandIn(words.ERROR, ("StopIteration", (), None, "", None, {})), (), None)


def _called_back(
    message: tuple[Any, ...], function: "CallbackPlayer", played: PlayedProgram, callbacks: dict[int, int]
) -> bytes:
    try:
        kind, *rest = _resolved(function.answer(message[3], message[4]), played, callbacks)
    except (UnknownCallback, LookupError):
        played.unknown_callback = True
        kind, *rest = words.RAISE, _NO_ANSWER, ()
    return write_frame((kind, message[1], *rest))


class CallbackPlayer:
    """A function of a test during one program: it answers as recorded, for the same arguments."""

    def __init__(self, recorded: RecordedCallback) -> None:
        self._recorded = recorded
        self._turns: Counter[str] = Counter()

    def answer(self, args: Any, kwargs: Any) -> tuple[Any, ...]:
        try:
            key = callback_key(args, kwargs)
        except (RecursionError, TypeError, ValueError):  # arguments that nobody recorded
            raise UnknownCallback from None
        answers = self._recorded.answers.get(key)
        if not answers:
            raise UnknownCallback
        turn = min(self._turns[key], len(answers) - 1)
        self._turns[key] += 1
        return answers[turn]


def _shared_key(step: ProgramStep) -> str:
    return f"{step.operation} {step.fields!r}"


def _resolved(fields: Any, played: PlayedProgram, callbacks: dict[int, int]) -> Any:
    """Fields with this worker's numbers. Raises LookupError where an answer has no such object."""
    kind = type(fields)
    if kind is ObjectReference:
        answer = played.answers[fields.step]
        if answer in (UNREACHED, LOST) or answer[0] == words.SAME:
            raise LookupError
        number = part_at(answer, fields.path)
        if type(number) not in (int, str):
            raise LookupError
        return number
    if kind is CallbackReference:
        return callbacks[fields.number]
    if kind is tuple or kind is list:
        return kind(_resolved(field, played, callbacks) for field in fields) if _may_refer(fields) else fields
    if kind is dict:
        return {key: _resolved(item, played, callbacks) for key, item in fields.items()}
    if kind is Unbuilt:
        return replace(fields, items=_resolved(fields.items, played, callbacks))
    return StandIn(fields.kind, _resolved(fields.payload, played, callbacks)) if kind is StandIn else fields


def _may_refer(fields: Any) -> bool:
    return any(type(field) not in (str, int, float, bool, type(None), bytes) for field in fields)
