"""Read transcripts as programs: what one test asked, cut into pieces that do not depend on each other."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from gametape.verify.fresh.program import (
    CallbackReference,
    ObjectReference,
    Path,
    Program,
    ProgramStep,
    RecordedCallback,
    exposed_numbers,
    parts_of,
    what_counts,
    with_part,
)
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.replay.transcript import StandIn, Transcript, read_frame

_MOST_CALLS = 60
"""Calls of one program; what a test did after that is left out."""
_MOST_BYTES = 1 << 16
"""The longest request or answer that a program may have."""
_OBJECT_TEXT = "object {}"
_LEFT_OUT = frozenset({words.HELLO, words.MODULE_NAMES, words.SIGNATURE})
_OF_TEST = frozenset({words.MINE, words.CLASS, words.FUNCTION_OF_TEST, words.ERROR_OF_TEST, words.ITERATOR_OF_TEST})
_INSTANCES = frozenset(
    {words.HANDLE, words.FUNCTION, words.ITERATOR, words.ASYNC_ITERATOR, words.AWAITABLE, words.CONTEXT, words.ERROR}
)


class UnreadableTranscript(Exception):
    """The transcript holds something that a program cannot say."""


@dataclass
class RecordedRequest:
    """One request of a transcript and its answer."""

    operation: int
    fields: tuple[Any, ...]
    answer: tuple[Any, ...] = ()
    callbacks: set[int] = field(default_factory=set)
    size: int = 0


@dataclass
class DecodedTranscript:
    """A transcript, decoded: requests with answers, and how the test's own functions answered."""

    requests: list[RecordedRequest] = field(default_factory=list)
    callbacks: dict[int, dict[str, list[tuple[Any, ...]]]] = field(default_factory=dict)


def greeting(transcripts: Iterable[Transcript]) -> tuple[Any, ...] | None:
    """The fields of the first request of a recording: import roots, modules, classes."""
    for transcript in transcripts:
        for frame in transcript.frames:
            message = read_frame(frame.body)
            if frame.by_test and message[0] == words.REQUEST and message[2] == words.HELLO:
                return tuple(message[3])
    return None


def read_programs(transcripts: Sequence[Transcript]) -> list[Program]:
    """The programs of all transcripts, each once. Transcripts that no program can say are left out."""
    programs: dict[str, Program] = {}
    for transcript in transcripts:
        try:
            recorded = read_requests(transcript)
            for program in _cut(recorded):
                programs.setdefault(program.key, program)
        except (UnreadableTranscript, WireError, LookupError, TypeError, ValueError):
            continue
    return list(programs.values())


def read_requests(transcript: Transcript) -> DecodedTranscript:
    """Pair requests with answers. Raises UnreadableTranscript if a callback made requests of its own."""
    recorded = DecodedTranscript()
    pending: RecordedRequest | None = None
    asked: tuple[Any, ...] | None = None
    for frame in transcript.frames:
        message = read_frame(frame.body)
        if frame.by_test and message[0] == words.REQUEST:
            if pending is not None:
                raise UnreadableTranscript("a request within a call")
            pending = RecordedRequest(message[2], message[3], size=len(frame.body))
        elif pending is None:
            raise UnreadableTranscript("a message that belongs to no request")
        elif frame.by_test and asked is not None:
            table = recorded.callbacks.setdefault(asked[2], {})
            table.setdefault(callback_key(asked[3], asked[4]), []).append((message[0], *message[2:]))
            pending.callbacks.add(asked[2])
            asked = None
        elif message[0] == words.CALLBACK:
            asked = message
        else:
            pending.answer = tuple(message)
            pending.size += len(frame.body)
            recorded.requests.append(pending)
            pending = None
    return _with_texts_for_objects(recorded)


def _with_texts_for_objects(recorded: DecodedTranscript) -> DecodedTranscript:
    """The transcript with a text in place of each object of the test's own that the code was given and that has no
    data. Where the code only keeps it and hands it back, a text does as well; where it asks something of it, the
    reference does not answer as recorded, and the program is left out."""
    numbers = {
        part.payload[0]
        for request in recorded.requests
        for _, part in parts_of(request.fields)
        if isinstance(part, StandIn) and part.kind == words.OBJECT_OF_TEST and part.payload[2] is None
    }
    if numbers:
        for request in recorded.requests:
            request.fields = _texts_for(request.fields, numbers)
            request.answer = _texts_for(request.answer, numbers)
    return recorded


def _texts_for(value: Any, numbers: set[int]) -> Any:
    if isinstance(value, StandIn):
        number = value.payload[0] if value.kind == words.OBJECT_OF_TEST else value.payload
        if value.kind in (words.OBJECT_OF_TEST, words.YOURS) and number in numbers:
            return _OBJECT_TEXT.format(number)
        return StandIn(value.kind, _texts_for(value.payload, numbers))
    if isinstance(value, Unbuilt):
        return replace(value, items=_texts_for(value.items, numbers))
    if type(value) in (list, tuple):
        return type(value)(_texts_for(item, numbers) for item in value)
    if type(value) is dict:
        return {key: _texts_for(item, numbers) for key, item in value.items()}
    return value


def callback_key(args: Any, kwargs: Any) -> str:
    """Identifies the arguments of a callback; objects count as objects, whatever their numbers."""
    return repr((_without_numbers(args), sorted((str(key), _without_numbers(item)) for key, item in kwargs.items())))


def _without_numbers(value: Any) -> Any:
    if isinstance(value, StandIn):
        return ("stand-in", value.kind)
    if isinstance(value, Unbuilt):
        return replace(value, items=_without_numbers(value.items))
    if isinstance(value, (list, tuple)):
        return type(value)(_without_numbers(item) for item in value)
    if isinstance(value, dict):
        return {key: _without_numbers(item) for key, item in value.items()}
    return value


@dataclass
class _Names:
    """What the numbers of a recording stand for."""

    origin: dict[int, tuple[int, Path, int]] = field(default_factory=dict)
    label: dict[int, str] = field(default_factory=dict)
    class_of: dict[int, int] = field(default_factory=dict)

    def function(self, request: RecordedRequest) -> str:
        number = request.fields[0]
        if request.operation == words.RUN_PROGRAM:
            return _program_name(number)
        if type(number) is not int:
            return ""
        if request.operation in (words.CALL, words.MAKE_ERROR):
            return self.label.get(number, "")
        name = request.fields[1] if len(request.fields) > 1 and isinstance(request.fields[1], str) else ""
        if request.operation == words.EQUALS:
            name = "__eq__"
        owner = self.class_of.get(number, number)
        return f"{self.label.get(owner, '')}.{name or 'next'}"


def _program_name(arguments: Sequence[str]) -> str:
    """The program that a command line starts: a file, or the module that an interpreter is told to run."""
    own = [word for word in arguments if word != "-m"]
    starts_python = len(own) > 1 and PurePath(own[0]).name.startswith("python")
    return f"program:{own[1 if starts_python else 0]}"


def _name_numbers(requests: list[RecordedRequest]) -> _Names:
    names = _Names()
    for index, request in enumerate(requests):
        for number, path, kind in exposed_numbers(request.operation, request.answer):
            names.origin.setdefault(number, (index, path, kind))
        looks_up = request.operation == words.MODULE_ATTRIBUTE
        for _, part in parts_of(request.answer[2]):
            if isinstance(part, StandIn) and part.kind == words.HANDLE:
                names.class_of.setdefault(part.payload[0], part.payload[1])
            elif isinstance(part, StandIn) and part.kind == words.FUNCTION:
                number, name, qualname, module, _ = part.payload
                names.label.setdefault(number, f"{module}:{qualname or name}")
            elif isinstance(part, StandIn) and part.kind == words.CLASS and type(part.payload) is int and looks_up:
                names.label.setdefault(part.payload, ":".join(request.fields))
        if request.operation == words.DESCRIBE and request.answer[0] == words.RETURN:
            described = request.answer[2]
            names.label[request.fields[0]] = f"{described['module']}:{described['qualname']}"
    return names


def _cut(recorded: DecodedTranscript) -> list[Program]:
    """The programs of one test: calls that share an object stay together."""
    requests = recorded.requests
    names = _name_numbers(requests)
    uses = [_numbers_used(request) for request in requests]
    groups = _Groups()
    calls = {index for index, request in enumerate(requests) if _is_call(request, names)}
    for index in sorted(calls):
        groups.add(index)
        shared = {number for number in uses[index] if _is_instance(number, names, calls)}
        for number in shared:
            if names.origin[number][0] in groups:
                groups.join(index, names.origin[number][0])
        for callback in requests[index].callbacks | _callbacks_given(requests[index]):
            groups.join_by(("callback", callback), index)
        for number in shared:
            groups.join_by(number, index)
    programs = []
    for members in groups.all():
        cut = _up_to_the_first_unsayable(sorted(members), requests)[:_MOST_CALLS]
        with contextlib.suppress(UnreadableTranscript, LookupError):  # other programs of the test need not wait for it
            programs += [_program(cut, recorded, names, uses)] if cut else []
    return programs


def _is_instance(number: int, names: _Names, calls: set[int]) -> bool:
    """Whether an object has a state that calls may share: a call made it, or a module holds it."""
    origin, _, kind = names.origin.get(number, (-1, (), -1))
    return kind in _INSTANCES and (origin in calls or kind == words.HANDLE)


def _is_call(request: RecordedRequest, names: _Names) -> bool:
    if request.operation in (words.IMPORT, words.MODULE_ATTRIBUTE, words.DESCRIBE) or request.operation in _LEFT_OUT:
        return False
    if request.operation == words.GET:
        return names.origin.get(request.fields[0], (0, (), -1))[2] != words.CLASS
    return True


def _up_to_the_first_unsayable(members: list[int], requests: list[RecordedRequest]) -> list[int]:
    for position, index in enumerate(members):
        request = requests[index]
        if request.size > _MOST_BYTES or not _is_sayable(request):
            return members[:position]
    return members


def _is_sayable(request: RecordedRequest) -> bool:
    if request.operation == words.RUN_PROGRAM:
        arguments, _, _, directory, _ = request.fields
        return type(arguments) is list and len(arguments) > 0 and directory is None
    return request.operation <= words.COPY and not any(map(_is_unsayable, parts_of(request.fields)))


def _is_unsayable(place: tuple[Path, Any]) -> bool:
    """Whether a part is something of the test's own, or holds objects where no path leads: among the elements of a set
    or the keys of a dict."""
    _, part = place
    if isinstance(part, StandIn):
        return part.kind not in _OF_TEST
    return isinstance(part, (set, frozenset, dict)) and any(
        isinstance(inner, (StandIn, Unbuilt)) for key in part for _, inner in parts_of(key)
    )


def _callbacks_given(request: RecordedRequest) -> set[int]:
    given = set()
    for _, part in parts_of(request.fields):
        if isinstance(part, StandIn) and part.kind == words.FUNCTION_OF_TEST:
            given.add(part.payload[0])
        elif isinstance(part, StandIn) and part.kind == words.ITERATOR_OF_TEST:
            given.add(part.payload)
    return given


def _numbers_used(request: RecordedRequest) -> set[int]:
    return {number for _, number in _references(request)}


def _references(request: RecordedRequest) -> list[tuple[Path, int]]:
    """Places in the fields that hold a number of the worker."""
    found: list[tuple[Path, int]] = []
    looks_up = request.operation in (words.HELLO, words.IMPORT, words.MODULE_ATTRIBUTE, words.MODULE_NAMES)
    if not looks_up and type(request.fields[0]) is int:
        found.append(((0,), request.fields[0]))
    for path, part in parts_of(request.fields):
        if not isinstance(part, StandIn):
            continue
        if part.kind in (words.MINE, words.CLASS) and type(part.payload) is int:
            found.append(((*path, "payload"), part.payload))
        elif part.kind == words.ERROR_OF_TEST:
            found += [((*path, "payload", at), part.payload[at]) for at in (0, 2) if type(part.payload[at]) is int]
    return found


class _Groups:
    """Disjoint groups of requests, by number."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._first: dict[Any, int] = {}

    def __contains__(self, member: int) -> bool:
        return member in self._parent

    def add(self, member: int) -> None:
        self._parent.setdefault(member, member)

    def find(self, member: int) -> int:
        while self._parent[member] != member:
            member = self._parent[member]
        return member

    def join(self, one: int, other: int) -> None:
        self._parent[self.find(one)] = self.find(other)

    def join_by(self, key: Any, member: int) -> None:
        """Put all members with this key into one group."""
        self.join(member, self._first.setdefault(key, member))

    def all(self) -> list[list[int]]:
        members = defaultdict(list)
        for member in self._parent:
            members[self.find(member)].append(member)
        return list(members.values())


def _program(members: list[int], recorded: DecodedTranscript, names: _Names, uses: list[set[int]]) -> Program:
    """The members and the look-ups that they need, with references in place of numbers."""
    needed = set(members)
    waiting = list(members)
    while waiting:
        index = waiting.pop()
        for number in uses[index]:
            origin = names.origin[number][0]
            if origin >= index:
                raise UnreadableTranscript("an object that no earlier answer gave: a class of the test")
            if origin not in needed:
                needed.add(origin)
                waiting.append(origin)
    order = sorted(needed)
    position = {index: at for at, index in enumerate(order)}
    steps, callbacks = [], set()
    for index in order:
        request = recorded.requests[index]
        if not _is_sayable(request):
            raise UnreadableTranscript("something that only its test can say")
        callbacks |= _callbacks_given(request)
        is_call = _is_call(request, names)
        label = names.function(request) if is_call else ""
        answer = what_counts(request.operation, request.answer)
        steps.append(ProgramStep(request.operation, _symbolic(request, names, position), label, answer))
    answers = {
        number: RecordedCallback(
            {
                key: tuple(_symbolic_answer(answer, names, position) for answer in given)
                for key, given in recorded.callbacks.get(number, {}).items()
            }
        )
        for number in callbacks
    }
    return Program(tuple(steps), answers)


def _symbolic(request: RecordedRequest, names: _Names, position: dict[int, int]) -> tuple[Any, ...]:
    fields: Any = request.fields
    if request.operation == words.RUN_PROGRAM:
        return (tuple(fields[0]), *fields[1:])  # each of its arguments has a place of its own
    for path, number in _references(request):
        origin, place, _ = names.origin[number]
        fields = with_part(fields, path, ObjectReference(position[origin], place))
    for path, part in list(parts_of(fields)):
        if isinstance(part, StandIn) and part.kind == words.FUNCTION_OF_TEST:
            fields = with_part(fields, (*path, "payload", 0), CallbackReference(part.payload[0]))
        elif isinstance(part, StandIn) and part.kind == words.ITERATOR_OF_TEST:
            fields = with_part(fields, (*path, "payload"), CallbackReference(part.payload))
    return tuple(fields)


def _symbolic_answer(answer: tuple[Any, ...], names: _Names, position: dict[int, int]) -> tuple[Any, ...]:
    """What a callback answered. Only objects that the program has may be in it."""
    request = replace(RecordedRequest(words.IMPORT, answer))
    if any(map(_is_unsayable, parts_of(answer))):
        raise UnreadableTranscript("a callback that answers with something of the test")
    return _symbolic(request, names, position)
