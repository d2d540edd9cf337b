"""A worker that does not play by the rules gets nothing but a failed test. The test plays the worker itself."""

import contextlib
import math
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gametape.verify.inside import proxy
from gametape.verify.inside import wire_protocol as words
from gametape.verify.inside.proxy_decoys import among_decoys
from gametape.verify.inside.proxy_session import CallTimeout, Session
from gametape.verify.inside.wire import WireError, decode, encode
from gametape.verify.inside.wire_channel import Channel
from tests.verify.inside.workshop_tools import VERIFY, serving, write_code

Script = Callable[["Impostor"], None]


class Extended:
    """Written as a stand-in of this kind, whatever it says."""

    def __init__(self, kind: int, payload: Any) -> None:
        self.parts = kind, payload


class Impostor:
    """The worker's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel = Channel(sock)

    def request(self) -> Any:
        return decode(self.channel.receive(), lambda kind, payload: (kind, payload))

    def send(self, *message: Any) -> None:
        self.channel.send(encode(message, lambda value: value.parts if type(value) is Extended else None))

    def answer(self, value: Any, updates: Any = (), printed: Any = None, kind: int = words.RETURN) -> Any:
        request = self.request()
        self.send(kind, request[1], value, updates, printed)
        return request


@contextlib.contextmanager
def impostor(script: Script, seconds: float = 5.0, classes: tuple[str, ...] = ("m:C",)) -> Iterator[Session]:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with contextlib.suppress(WireError, OSError):
            script(Impostor(theirs))
        theirs.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield Session(ours, classes, seconds)
    finally:
        ours.close()
        thread.join(5)


def call(session: Session, *args: Any) -> Any:
    return session.ask(words.CALL, 1, args, None)


DESCRIPTION = {
    "name": "C",
    "qualname": "C",
    "module": "m",
    "doc": None,
    "bases": (),
    "is_error": False,
    "declared": True,
    "special": ("__eq__", "__hash__", "__bool__", "__len__"),
    "hashable": True,
    "methods": (),
}


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
    "an exception that exits": one(Extended(words.ERROR, ("SystemExit", (0,), None, "", None, {}))),
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
        started = time.perf_counter()
        with pytest.raises(CallTimeout, match="no answer any more"):
            call(session)
        assert time.perf_counter() - started < 0.1


def test_a_worker_that_dribbles_is_too_slow() -> None:
    def dribble(worker: Impostor) -> None:
        worker.sock.sendall(b"\x00\x00\x10\x00")
        for _ in range(40):
            worker.sock.sendall(b"x")
            time.sleep(0.05)

    with impostor(dribble, seconds=0.3) as session:
        started = time.perf_counter()
        with pytest.raises(CallTimeout):
            call(session)
        assert time.perf_counter() - started < 1.5


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


def handle_that(outcome: Callable[[int], Any], mentioned: bool = True) -> tuple[Script, Callable[[Session], Any]]:
    """A handle whose comparisons have this outcome by candidate, and how the test gets it."""

    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9)))
        worker.answer(DESCRIPTION)
        while True:
            request = worker.request()
            if request[2] == words.EQUALS:
                value = [(False, outcome(index)) for index, _ in enumerate(request[3][1])]
            else:
                value = outcome(0)
            worker.send(words.RETURN, request[1], value, (), None)

    def get(session: Session) -> Any:
        handle = call(session)
        if mentioned:
            session.stand_ins.classes.mention(type(handle))
        return handle

    return script, get


def test_an_object_that_equals_everything_is_unmasked() -> None:
    script, get = handle_that(lambda _: True)
    with impostor(script) as session:
        handle = get(session)
        for value in (3, 1.5, "text", [1, 2], {"a": 1}, (), None, True, {1}, b"x", math.nan):
            with pytest.raises(TypeError, match="values that differ"):
                assert handle == value
        with pytest.raises(TypeError, match="values that differ"):
            assert handle in [1, 2, 3]
        with pytest.raises(TypeError, match="values that differ"):
            assert handle == pytest.approx(3)


def test_an_object_that_guesses_is_mostly_wrong() -> None:
    script, get = handle_that(lambda index: index == 0)
    with impostor(script) as session:
        handle = get(session)
        assert 10 < sum(handle == 3 for _ in range(90)) < 55


def test_an_object_of_a_class_the_test_never_took_equals_no_plain_data() -> None:
    script, get = handle_that(lambda _: True, mentioned=False)
    with impostor(script) as session:
        handle = get(session)
        assert handle != 3
        assert handle != [1]


def test_special_methods_answer_in_exact_types() -> None:
    script, get = handle_that(lambda _: "yes")
    with impostor(script) as session:
        handle = get(session)
        for action in (bool, len, hash, lambda handle: handle == 3):
            with pytest.raises(TypeError):
                action(handle)


def test_a_comparison_cannot_change_what_is_expected() -> None:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9)))
        worker.answer(DESCRIPTION)
        worker.answer([(False, False)] * 5, updates=((0, ["changed"]),))

    with impostor(script) as session:
        handle = call(session)
        session.stand_ins.classes.mention(type(handle))
        expected = [1, 2]
        with pytest.raises(WireError):
            assert handle == expected
        assert expected == [1, 2]


@pytest.mark.parametrize(
    "value",
    [0, 1.5, "", "abc", "A1", b"", b"x", [], [1, [2]], (), ("a",), {}, {"a": 1}, set(), {1, 2}, True, None, math.inf],
)
def test_decoys_have_the_shape_and_differ(value: Any) -> None:
    for _ in range(20):
        chain, place = among_decoys(value)
        found = [each for number, each in enumerate(chain) if number != place]
        assert chain[place] is value
        assert found
        assert all(each != value for each in found)
        assert value is None or all(type(each) is type(value) for each in found)


def test_the_real_value_is_not_the_one_most_like_the_others() -> None:
    """Who says that the middle one is meant must be wrong most of the time."""

    def distance(one: str, other: str) -> int:
        return sum(a != b for a, b in zip(one, other, strict=True))

    right = 0
    for _ in range(400):
        chain, place = among_decoys("a fairly long expected text")
        middle = min(range(len(chain)), key=lambda n: sum(distance(chain[n], each) for each in chain))
        right += middle == place
    assert right < 200


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


ACCOUNT = {
    "bank/__init__.py": "",
    "bank/account.py": """
        class InsufficientFunds(ValueError):
            def __init__(self, missing):
                super().__init__(f"{missing} short")
                self.missing = missing

        class Account:
            def __init__(self, balance=0):
                self.balance = balance

            def withdraw(self, amount):
                if amount > self.balance:
                    raise InsufficientFunds(amount - self.balance)
                self.balance -= amount
                return self.balance

            def __eq__(self, other):
                return isinstance(other, Account) and other.balance == self.balance

        class Anything(Account):
            def __eq__(self, other):
                return True
    """,
    "bank/report.py": """
        from collections import Counter

        def totals(rows, key=None):
            counts = Counter(key(row) if key else row for row in rows)
            print(f"{len(counts)} kinds")
            return counts

        def leave():
            import os
            os._exit(0)
    """,
}
TESTS = """
    import pytest
    from bank import report
    from bank.account import Account, Anything, InsufficientFunds

    @pytest.fixture
    def account():
        return Account(10)

    @pytest.mark.parametrize(("amount", "left"), [(1, 9), (10, 0)])
    def test_withdraw(account, amount, left):
        assert account.withdraw(amount) == left
        assert account == Account(left)

    class TestErrors:
        def test_too_much(self, account):
            with pytest.raises(InsufficientFunds, match="5 short") as caught:
                account.withdraw(15)
            assert caught.value.missing == 5

        def test_is_a_value_error(self, account):
            with pytest.raises(ValueError):
                account.withdraw(11)

    def test_totals(capsys):
        assert report.totals(["a", "bb", "c"], key=len) == {1: 2, 2: 1}
        assert capsys.readouterr().out == "2 kinds\\n"

    def test_wrong():
        assert report.totals("aab") == {"a": 1, "b": 1}

    def test_forged():
        assert Anything() == 3

    def test_ended():
        report.leave()

    def test_after():
        assert report.totals("a") == {"a": 1}
"""
RUN = """
    import socket, sys
    sys.path.insert(0, sys.argv[1])
    import pytest
    from inside import proxy
    proxy.install(socket.socket(fileno=int(sys.argv[2])), ["bank.account", "bank.report"], ["bank.account:Account"],
                  [sys.argv[3]])
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-rA", "--tb=line", sys.argv[4]]))
"""


def test_pytest_over_a_worker(tmp_path: Path) -> None:
    write_code(tmp_path / "code", ACCOUNT)
    write_code(tmp_path, {"tests/test_bank.py": TESTS})
    with serving() as sock:
        command = [sys.executable, "-I", "-B", "-c", textwrap.dedent(RUN), VERIFY, sock.fileno(), tmp_path / "code"]
        ran = subprocess.run(
            [*map(str, command), str(tmp_path / "tests")],
            cwd=tmp_path,
            pass_fds=[sock.fileno()],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    outcomes = {
        name.partition("::")[2]: outcome
        for outcome, name in (line.split()[:2] for line in ran.stdout.splitlines() if "test_bank.py::" in line)
    }
    failed = {"test_wrong", "test_forged", "test_ended", "test_after"}
    passed = {"test_withdraw[1-9]", "test_withdraw[10-0]", "test_totals"}
    passed |= {"TestErrors::test_too_much", "TestErrors::test_is_a_value_error"}
    assert outcomes == {**dict.fromkeys(failed, "FAILED"), **dict.fromkeys(passed, "PASSED")}, ran.stdout


@pytest.mark.slow
def test_thousands_of_calls_a_second(tmp_path: Path) -> None:
    write_code(tmp_path, {"speedy.py": "def add(a, b): return a + b\n"})
    with serving() as sock:
        proxy.install(sock, ["speedy"], (), [str(tmp_path)])
        from speedy import add

        rates = []
        for _ in range(5):
            started = time.perf_counter()
            for number in range(4000):
                assert add(number, 1) == number + 1
            rates.append(4000 / (time.perf_counter() - started))
    sys.meta_path.pop(0)
    del sys.modules["speedy"]
    assert max(rates) > 5000, rates
