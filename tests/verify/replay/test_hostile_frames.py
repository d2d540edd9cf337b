"""Whatever an attempt sends, the host compares it, asks on and writes about it without an exception of its own."""

import contextlib
import socket
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.agreement import agrees
from gametape.verify.fresh.conversation import LOST, PlayedProgram, ProgramConversation
from gametape.verify.fresh.guessable import is_guessable
from gametape.verify.fresh.readable_program import answer_text
from gametape.verify.fresh.transcript_reader import read_programs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_channel import pack_frame
from gametape.verify.replay.attempt import _fails_outright
from gametape.verify.replay.comparison import Difference, find_difference, is_answer, printable
from gametape.verify.replay.connection import ConnectionOver, FrameConnection
from gametape.verify.replay.hostile_frame import LEAST_LIMIT, read_answer
from gametape.verify.replay.replayer import ReplayResult, _compare
from gametape.verify.replay.script import write_script
from gametape.verify.replay.transcript import StandIn, write_frame
from gametape.verify.transcript_text import describe_answer, describe_request, raised
from tests.verify.fresh.frames import FUNCTION, call, transcript

_CALLBACK = StandIn(words.FUNCTION_OF_TEST, (3, "f", "f", None, None))
_TRANSCRIPTS = (
    transcript(call("pear", returned="rap"), call([1, 2], returned={"a": (1, 2.5)})),
    transcript(
        (words.CALL, (FUNCTION, ("x",), None), StandIn(words.HANDLE, (9 << 20, 8 << 20))),
        (words.METHOD, (9 << 20, "total", ("x",), None), 4),
        (words.EQUALS, (9 << 20, ("abc",)), [(False, True)]),
    ),
    transcript((words.CALL, (FUNCTION, (_CALLBACK,), None), 3)),
)
_HUGE = 10**5000


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(5000, 5001).map(lambda digits: 10**digits)
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["\ud800", "#", "#1", "ValueError", "builtins:KeyError", "name", "bases", "special"])
    | st.binary(max_size=8)
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["name", "bases", "special", "module", "", "1", 1])
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=6).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.builds(StandIn, st.integers(0, 45), inner)
        | st.builds(StandIn, st.integers(0, 45), st.lists(inner, max_size=6).map(tuple))
    )


_VALUES = st.recursive(_LEAVES, _larger, max_leaves=12)
_FRAMES = st.tuples(
    st.sampled_from([words.RETURN, words.SAME, words.RAISE, words.CALLBACK, words.REQUEST]) | _VALUES,
    st.integers(0, 8) | _VALUES,
    _VALUES,
    st.just(()) | _VALUES,
    st.none() | st.just(("out", "")) | _VALUES,
).map(write_frame)


def _damaged(body: bytes, at: int, byte: bytes) -> bytes:
    return body[: at % len(body)] + byte + body[at % len(body) + 1 :]


@settings(max_examples=100, deadline=None, suppress_health_check=[*HealthCheck])
@given(_FRAMES | st.builds(_damaged, _FRAMES, st.integers(0, 400), st.binary(max_size=3)))
@example(write_frame((words.RETURN, 4, _HUGE, (), None)))
@example(write_frame((words.RETURN, 4, _nested([], 1500), (), None)))
@example(write_frame((words.RETURN, 4, "x", (1, 2), None)))
@example(write_frame((words.RETURN, 4, "x", (), 5)))
@example(write_frame((words.RAISE, 4, StandIn(words.ERROR, (_HUGE, (), None, "", None, {})), (), None)))
@example(write_frame((words.RAISE, 4, StandIn(words.ERROR, ("#x", (), None, "\ud800", None, {})), (), None)))
@example(write_frame((words.RAISE, 4, StandIn(words.MODULE, _HUGE), (), None)))
@example(write_frame((words.CALLBACK, 4, [1], (), {})))
@example(write_frame((words.CALLBACK, 4, 0, (_HUGE,), {1: 1, "1": "x"})))
def test_no_frame_of_an_attempt_is_an_exception_of_the_host(body: bytes) -> None:
    for recorded in _TRANSCRIPTS:
        honest = [frame.body for frame in recorded.frames if not frame.by_test]
        for at in range(len(honest)):
            _replayed(recorded, [*honest[:at], body, *honest[at + 1 :]])
            _asked_afresh(recorded, [*honest[:at], body, *honest[at + 1 :]])


def _replayed(recorded: Any, answers: list[bytes]) -> None:
    differences: list[Difference] = []
    with _connection(answers) as connection, contextlib.suppress(ConnectionOver):
        _compare(write_script(recorded), differences, connection, time.monotonic() + 60)
    for difference in differences:
        texts = [
            str(difference),
            describe_request(difference.request),
            describe_answer(difference.actual),
            raised(difference.actual) or "",
        ]
        printable("".join(texts)).encode()
        assert difference == find_difference(
            difference.request_frame, difference.expected_frame, difference.actual_frame
        )
        _fails_outright(SourceTree({"test_shop.py": b""}), "test_shop.py::test", ReplayResult("t", False, difference))
        is_answer(difference.actual_frame)


def _asked_afresh(recorded: Any, answers: list[bytes]) -> None:
    programs = read_programs([recorded])
    played = [PlayedProgram() for _ in programs]
    with _connection(answers) as connection, contextlib.suppress(ConnectionOver):
        conversation = ProgramConversation(connection, time.monotonic() + 60, ())
        conversation.play(programs, played)
        conversation.name_errors(played)
    for program, one in zip(programs, played, strict=True):
        one.answers += [LOST] * (len(program.steps) - len(one.answers))
        expected = PlayedProgram([step.recorded for step in program.steps])
        for index, step in enumerate(program.steps):
            agrees(expected, one, index)
            answer_text(one, index).encode()
            if one.answers[index] != LOST:
                is_guessable(step, one.answers[index], set())


class _connection:
    """A connection on which some frames have come already, and then its end."""

    def __init__(self, answers: list[bytes]) -> None:
        self._here, self._there = socket.socketpair()
        self._there.sendall(b"".join(map(pack_frame, answers)))
        self._there.shutdown(socket.SHUT_WR)

    def __enter__(self) -> FrameConnection:
        return FrameConnection(self._here)

    def __exit__(self, *_: object) -> None:
        self._here.close()
        self._there.close()


def test_stand_ins_in_sets_in_stand_ins_are_read_in_one_pass() -> None:
    """Each level would otherwise be hashed by all that lies within it."""
    inner: Any = bytes(1 << 14)
    for _ in range(40):
        inner = StandIn(words.YOURS, frozenset([inner]))
    calls = 0

    class Counted(bytes):
        def __repr__(self) -> str:
            nonlocal calls
            calls += 1
            return "b''"

    hash(StandIn(words.YOURS, frozenset([Counted()])))
    assert calls == 0
    with pytest.raises(WireError, match="no known form"):
        read_answer(write_frame((words.RETURN, 1, inner, (), None)))


@pytest.mark.parametrize(
    "body",
    [
        write_frame((words.RETURN, 1, bytes(LEAST_LIMIT), (), None)),
        write_frame((words.RETURN, 1, _nested([], 150), (), None)),
        write_frame((words.RETURN, 1 << 70, "x", (), None)),
    ],
)
def test_what_no_honest_worker_sends_is_refused(body: bytes) -> None:
    with pytest.raises(WireError):
        read_answer(body)


def test_a_large_answer_is_not_kept() -> None:
    expected = write_frame((words.RETURN, 1, "short", (), None))
    large = write_frame((words.RETURN, 1, [set() for _ in range(100_000)], (), None))
    assert find_difference(expected, expected, large).actual_frame == b""
