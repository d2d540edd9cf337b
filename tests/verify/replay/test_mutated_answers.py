"""Answers of an honest worker, each with a few parts changed: every one is a wrong answer, and none an exception."""

import collections
import contextlib
import datetime
import decimal
import socket
import time
from collections.abc import Sequence
from random import Random
from typing import Any

from gametape.core.task import SplitSurface
from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.agreement import agrees
from gametape.verify.fresh.conversation import LOST, PlayedProgram, ProgramConversation
from gametape.verify.fresh.differences import differing_steps
from gametape.verify.fresh.readable_program import answer_text
from gametape.verify.fresh.transcript_reader import read_programs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import Unsendable
from gametape.verify.in_sandbox.wire_channel import pack_frame
from gametape.verify.replay.attempt import ReplayedTests, _fails_outright
from gametape.verify.replay.comparison import Difference
from gametape.verify.replay.connection import ConnectionOver, FrameConnection
from gametape.verify.replay.live_answers import answered_alike
from gametape.verify.replay.recording import Recording
from gametape.verify.replay.replayer import ReplayResult, _compare
from gametape.verify.replay.script import write_script
from gametape.verify.replay.transcript import Frame, StandIn, Transcript, read_frame, write_frame
from gametape.verify.transcript_text import describe_answer, describe_request, object_names
from gametape.verify.verdict_runs import _message
from gametape.verify.verifier_run import TestOutcome
from tests.verify.fresh.frames import CLASS, FUNCTION, LOOK_UPS, transcript

_TEST = "test_shop.py::test"
_MUTATIONS = 3000
_BASKET = 9 << 20
_CALLBACK = StandIn(words.FUNCTION_OF_TEST, (3, "f", "f", None, None))
_ERROR = StandIn(words.ERROR, ("ValueError", ("empty",), None, "empty", None, {}))
_OWN_ERROR = StandIn(words.ERROR, (CLASS, ("empty",), 10 << 20, "empty", ("KeyError", (), None, "", None, {}), {}))
_FIRST = len(LOOK_UPS)
_TRANSCRIPTS = (
    transcript(
        (words.CALL, (FUNCTION, ([1], {"a": (1, 2.5)}), None), ["x", {1: b"2"}, {3, 4}]),
        (words.CALL, (FUNCTION, ("day",), None), datetime.date(2024, 2, 29)),
        (words.CALL, (FUNCTION, ("sum",), None), decimal.Decimal("1.50")),
        (words.CALL, (FUNCTION, ("last",), None), collections.deque([1, "x"])),
    ),
    transcript(
        (words.CALL, (CLASS, ("x",), None), StandIn(words.HANDLE, (_BASKET, CLASS, (1, "a")))),
        (words.METHOD, (_BASKET, "items", ("x",), None), StandIn(words.ITERATOR, 10 << 20)),
        (words.NEXT, (10 << 20,), "pear"),
        (words.EQUALS, (_BASKET, ("abc",)), [(False, True)]),
        (words.DESCRIBE, (CLASS,), {"name": "Basket", "bases": ("object",), "special": ("__len__",)}),
    ),
)


def _with_callback() -> Transcript:
    """A call that asks a function of the test, is answered, asks again, is refused, and raises an error of its own."""
    worker: list[tuple[bool, Any]] = [
        (True, (words.REQUEST, _FIRST, words.CALL, (FUNCTION, (_CALLBACK,), None), ())),
        (False, (words.CALLBACK, 0, 3, ("a",), {})),
        (True, (words.RETURN, 0, 3, ())),
        (False, (words.CALLBACK, 1, 3, ("b",), {})),
        (True, (words.RAISE, 1, StandIn(words.ERROR_OF_TEST, ("KeyError", ("b",), None, 0)), ())),
        (False, (words.RAISE, _FIRST, _OWN_ERROR, (), ("out", ""))),
        (True, (words.REQUEST, _FIRST + 1, words.CALL, (FUNCTION, ((),), None), ())),
        (False, (words.RAISE, _FIRST + 1, _ERROR, ((0, [1]),), None)),
    ]
    frames = (Frame(by_test, write_frame(message)) for by_test, message in worker)
    return Transcript(_TEST, (*transcript().frames, *frames), 0.0)


_PARTS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    7,
    1 << 70,
    10**5000,
    float("nan"),
    decimal.Decimal("sNaN"),
    "",
    "\ud800",
    "#1",
    "builtins:KeyError",
    b"\xff",
    (),
    [],
    {},
    {1: 1},
    (1,),
    ((),),
    {frozenset({1}), "x"},
    range(3),
    slice(1, None),
    [[[[[]]]]],
    NotImplemented,
    _ERROR,
    *(StandIn(kind, payload) for kind in range(46) for payload in (None, 0, "x", (), (1,), (1, 2, 3), {})),
)


def _mutated(value: Any, rng: Random) -> Any:
    """The value with one part, at any depth, changed, left out or given twice."""
    inner = [*value] if isinstance(value, (tuple, list, dict)) else []
    if isinstance(value, StandIn) and rng.random() < 0.7:
        return StandIn(value.kind, _mutated(value.payload, rng))
    if not inner or rng.random() < 0.15:
        return rng.choice(_PARTS)
    at = rng.randrange(len(inner))
    if isinstance(value, dict):
        return {**value, inner[at]: _mutated(value[inner[at]], rng)}
    parts = [inner[at]] * rng.choice((0, 2)) if rng.random() < 0.2 else [_mutated(inner[at], rng)]
    return type(value)([*inner[:at], *parts, *inner[at + 1 :]])


def _damaged(body: bytes, rng: Random) -> bytes:
    """A frame with a changed part, or with a changed byte."""
    if rng.random() < 0.2:
        at = rng.randrange(len(body))
        return body[:at] + rng.randbytes(rng.randrange(3)) + body[at + 1 :]
    message = read_frame(body)
    for _ in range(rng.choice((1, 1, 2, 3))):
        message = _mutated(message, rng)
    try:
        return write_frame(message)
    except Unsendable:  # a number of this size, which no worker can write
        return body[:-1]


def test_a_mutated_answer_is_a_wrong_answer() -> None:
    rng = Random(5)
    transcripts = (*_TRANSCRIPTS, _with_callback())
    differed = 0
    for number in range(_MUTATIONS):
        recorded = transcripts[number % len(transcripts)]
        honest = [frame.body for frame in recorded.frames if not frame.by_test]
        at = rng.randrange(len(honest))
        body = _damaged(honest[at], rng)
        answers = [*honest[:at], body, *honest[at + 1 :]]
        for difference in _replayed(recorded, answers):
            differed += 1
            _told(recorded, difference)
            answered_alike(write_script(recorded), difference, _as_live(recorded, answers))
        _asked_afresh(recorded, answers)
    assert differed > _MUTATIONS / 2


def _replayed(recorded: Transcript, answers: Sequence[bytes]) -> list[Difference]:
    differences: list[Difference] = []
    with _connection(answers) as connection, contextlib.suppress(ConnectionOver):
        _compare(write_script(recorded), differences, connection, time.monotonic() + 60)
    return differences


def _told(recorded: Transcript, difference: Difference) -> None:
    """What a policy and a grader read of a difference."""
    _fails_outright(SourceTree({"test_shop.py": b""}), _TEST, ReplayResult(_TEST, difference=difference))
    recording = Recording(SplitSurface(modules=[]), {_TEST: recorded})
    replayed = ReplayedTests({}, {_TEST: difference}, (), frozenset())
    for said in ("", "E   assert 'x' == 'y'"):
        _message(recording, replayed, TestOutcome(_TEST, "failed", message=said)).encode()
    names = object_names(recorded)
    describe_request(difference.request, names).encode()
    describe_answer(difference.actual, names).encode()
    str(difference)


def _as_live(recorded: Transcript, answers: Sequence[bytes]) -> list[Frame]:
    left = iter(answers)
    return [frame if frame.by_test else Frame(False, next(left)) for frame in recorded.frames]


def _asked_afresh(recorded: Transcript, answers: Sequence[bytes]) -> None:
    programs = read_programs([recorded])
    played = [PlayedProgram() for _ in programs]
    with _connection(answers) as connection, contextlib.suppress(ConnectionOver):
        conversation = ProgramConversation(connection, time.monotonic() + 60, ())
        conversation.play(programs, played)
        conversation.name_errors(played)
    for program, one in zip(programs, played, strict=True):
        one.answers += [LOST] * (len(program.steps) - len(one.answers))
        expected = PlayedProgram([step.recorded for step in program.steps])
        differing_steps(program, expected, one)
        for index in range(len(program.steps)):
            agrees(expected, one, index)
            answer_text(one, index).encode()


@contextlib.contextmanager
def _connection(answers: Sequence[bytes]) -> Any:
    """A connection on which some frames have come already, and then its end."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"".join(map(pack_frame, answers)))
        there.shutdown(socket.SHUT_WR)
        yield FrameConnection(here)


def test_a_difference_after_a_function_of_the_test_says_what_it_did() -> None:
    recorded = _with_callback()
    answers = [frame.body for frame in recorded.frames if not frame.by_test]
    at = answers.index(write_frame((words.CALLBACK, 1, 3, ("b",), {})))
    other = [*answers[:at], write_frame((words.CALLBACK, 1, 3, ("c",), {})), *answers[at + 1 :]]
    (difference,) = _replayed(recorded, other)
    assert describe_request(difference.request) == "a function of the test returned 3"
    (last,) = _replayed(recorded, [*answers[: at + 1], write_frame((words.RETURN, _FIRST, 5, (), None)), *answers[-1:]])
    assert describe_request(last.request) == "a function of the test raised an error"


def test_an_error_without_fields_is_no_answer() -> None:
    for payload in (None, (), "ValueError"):
        body = write_frame((words.RAISE, _FIRST + 1, StandIn(words.ERROR, payload), (), None))
        recorded = _with_callback()
        answers = [frame.body for frame in recorded.frames if not frame.by_test][:-1]
        (difference,) = _replayed(recorded, [*answers, body])
        assert difference.actual is None
        assert describe_answer(difference.actual) == "no answer"
