"""A worker that does not play by the rules gets nothing but a failed test. The test plays the worker itself."""

import struct
import threading
import time
from typing import Any

import pytest

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_session import CallTimeout
from gametape.verify.in_sandbox.wire import WireError
from tests.verify.in_sandbox.impostor import DESCRIPTION, Extended, Impostor, Script, call, impostor


def handle_of(description: Any) -> Script:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9)))
        worker.answer(description)

    return script


def one(value: Any, **more: Any) -> Script:
    return lambda worker: worker.answer(value, **more) and None


def raw(data: bytes) -> Script:
    def script(worker: Impostor) -> None:
        worker.request()
        worker.sock.sendall(data)

    return script


def several(*messages: tuple[Any, ...]) -> Script:
    def script(worker: Impostor) -> None:
        worker.request()
        for message in messages:
            worker.send(*message)

    return script


RUDE = {
    "hangs up": lambda worker: worker.request() and None,
    "closes before": lambda worker: None,
    "garbage": raw(b"\x00\x00\x00\x05hello"),
    "half a frame": raw(b"\x00\x00\x10\x00hello"),
    "a frame too long": raw(struct.pack(">I", 1 << 31)),
    "another id": several((words.RETURN, 12345, 1, (), None)),
    "no message": several((1,)),
    "not a kind": one(1, kind=77),
    "a request": several((words.REQUEST, 1, 2, 3, 4)),
    "an unknown callback": several((words.CALLBACK, 1, 0, (), {})),
    "a callback without arguments": several((words.CALLBACK, 1, 0, 3, 4)),
    "a handle of no class": one(Extended(words.HANDLE, (1, "x"))),
    "a handle without fields": one(Extended(words.HANDLE, 5)),
    "a handle of an undeclared class": handle_of({**DESCRIPTION, "declared": False}),
    "a class of itself": handle_of({**DESCRIPTION, "bases": (9,)}),
    "a class of builtins": handle_of({**DESCRIPTION, "bases": ("int",)}),
    "a class of nothing": handle_of(3),
    "a class with half a description": handle_of({"name": "C"}),
    "an unknown kind": one(Extended(200, None)),
    "a kind of the other side": one(Extended(words.FUNCTION_OF_TEST, (0, "f", "f", None, None))),
    "an exception of pytest": one(Extended(words.ERROR, ("_pytest.outcomes:Skipped", (), None, "", None, {}))),
    "an interrupt": one(Extended(words.ERROR, ("KeyboardInterrupt", (), None, "", None, {})), kind=words.RAISE),
    "unittest's skip": one(Extended(words.ERROR, ("unittest:SkipTest", (), None, "", None, {})), kind=words.RAISE),
    "an exception with a method": one(
        Extended(words.ERROR, ("ValueError", (), None, "", None, {"with_traceback": 1})), kind=words.RAISE
    ),
    "an exception with a class": one(
        Extended(words.ERROR, ("ValueError", (), None, "", None, {"__class__": int})), kind=words.RAISE
    ),
    "raises no exception": one(5, kind=words.RAISE),
    "an exception never given": one(Extended(words.YOUR_ERROR, 0), kind=words.RAISE),
    "a module": one(Extended(words.MODULE, "os")),
    "another type in place": one(None, updates=((0, {}),)),
    "an argument that is not there": one(None, updates=((9, []),)),
    "updates that are none": one(None, updates=[3]),
    "the same that is not": one(17, kind=words.SAME),
    "output that is none": one(None, printed=(1, 2)),
}


@pytest.mark.parametrize("script", RUDE.values(), ids=RUDE)
def test_a_rude_worker_is_a_wire_error_and_stays_one(script: Script) -> None:
    with impostor(script) as session:
        arguments = [1]
        with pytest.raises(WireError):
            call(session, arguments)
        assert arguments == [1]
        with pytest.raises(WireError, match="no answer any more"):
            call(session)


def causes(count: int) -> Any:
    return ("ValueError", (), None, "", causes(count - 1) if count else None, {})


def test_endless_causes() -> None:
    with impostor(one(Extended(words.ERROR, causes(50)), kind=words.RAISE)) as session, pytest.raises(WireError):
        call(session)


def test_a_hanging_call_fails_and_later_ones_fail_at_once() -> None:
    with impostor(lambda worker: time.sleep(2), seconds=0.3) as session:
        with pytest.raises(CallTimeout, match=r"0\.3 seconds"):
            call(session)
        with pytest.raises(CallTimeout, match="no answer any more"):
            call(session)


def test_a_worker_that_dribbles_is_too_slow() -> None:
    def dribble(worker: Impostor) -> None:
        worker.sock.sendall(b"\x00\x10\x00\x00")
        while True:
            worker.sock.sendall(b"x")
            time.sleep(0.05)

    with impostor(dribble, seconds=0.3) as session, pytest.raises(CallTimeout):
        call(session)


def test_endless_callbacks_end_with_the_call() -> None:
    def flood(worker: Impostor) -> None:
        worker.request()
        while True:
            worker.send(words.CALLBACK, 1, 0, (), {})
            worker.request()

    count = 0

    def callback() -> None:
        nonlocal count
        count += 1

    with impostor(flood, seconds=0.5) as session, pytest.raises(CallTimeout):
        call(session, callback)
    assert count > 10


def test_a_worker_that_does_not_listen_cannot_block_a_large_call() -> None:
    with impostor(lambda worker: time.sleep(2), seconds=0.3) as session, pytest.raises(CallTimeout):
        call(session, b"x" * (8 << 20))


def test_answers_sent_ahead_are_not_believed() -> None:
    def ahead(worker: Impostor) -> None:
        request = worker.request()
        worker.send(words.RETURN, request[1], 1, (), None)
        worker.send(words.RETURN, request[1], 2, (), None)
        worker.request()

    with impostor(ahead) as session:
        assert call(session) == 1
        with pytest.raises(WireError, match="not asked"):
            call(session)


def test_a_context_manager_cannot_swallow_a_failure() -> None:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.CONTEXT, 3))
        while True:
            request = worker.request()
            worker.send(words.RETURN, request[1], True, (), None)

    with impostor(script) as session:
        context = call(session)
        with pytest.raises(AssertionError), context:
            assert call(session) == 3
        with pytest.raises(TypeError), context:
            _first, _second = call(session)
        with pytest.raises(pytest.skip.Exception), context:
            pytest.skip("own decision")


def test_calls_from_threads_take_turns() -> None:
    def echo(worker: Impostor) -> None:
        while True:
            request = worker.request()
            worker.send(words.RETURN, request[1], request[3][1][0], (), None)

    with impostor(echo) as session:
        wrong: list[int] = []

        def work(number: int) -> None:
            wrong.extend(each for each in range(50) if call(session, number * 100 + each) != number * 100 + each)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
