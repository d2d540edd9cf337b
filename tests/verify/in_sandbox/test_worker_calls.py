"""Calls into honest code behind the proxy: what they raise, call back, yield and print."""

import asyncio
import collections.abc
import inspect
import json
import operator
import threading
import unittest
from collections.abc import Iterator
from typing import Any

import pytest

from gametape.verify.in_sandbox.proxy_errors import RemoteExit
from gametape.verify.in_sandbox.wire import Unsendable
from tests.verify.in_sandbox.shop import load

pytestmark = pytest.mark.usefixtures("served")


def test_exceptions_that_both_sides_know(tools: Any) -> None:
    with pytest.raises(ValueError, match="bad") as caught:
        tools.fail("value", "bad", 3)
    assert caught.value.args == ("bad", 3)
    with pytest.raises(json.JSONDecodeError, match="Expecting property name") as wrong:
        tools.load("{")
    assert (wrong.value.pos, wrong.value.lineno, wrong.value.doc) == (1, 1, "{")
    with pytest.raises(ModuleNotFoundError) as unknown:
        load("broken")
    assert unknown.value.name == "nothing_of_this_name"
    with pytest.raises(FileNotFoundError) as missing:
        tools.fail("os", 2, "gone", "file")
    assert (missing.value.errno, missing.value.filename) == (2, "file")
    with pytest.raises(UnicodeDecodeError) as broken:
        tools.fail("unicode", "utf-8", b"\xff", 0, 1, "no")
    assert broken.value.start == 0
    with pytest.raises(RecursionError):
        tools.deep()


def test_exceptions_of_the_code_itself(tools: Any) -> None:
    with pytest.raises(tools.ParseError, match="bad at 4") as caught:
        tools.fail("parse", "bad", 4)
    error = caught.value
    assert (error.args, error.line, error.where("line "), error.code) == (("bad", 4), 4, "line 4", 7)
    assert tools.ParseError.code == 7
    assert not hasattr(error, "nope")
    with pytest.raises(ValueError, match="x"):
        tools.fail("parse", "x")
    with pytest.raises(tools.ParseError):
        tools.fail("deep", "x")
    assert issubclass(tools.DeepError, tools.ParseError)
    with pytest.raises(KeyError):
        tools.fail("key", "x")
    with pytest.raises(tools.FileTrouble) as trouble:
        tools.fail("file", 5, "io")
    assert trouble.value.errno == 5
    with pytest.raises(tools.ParseError) as chained:
        tools.fail_from()
    assert isinstance(chained.value.__cause__, KeyError)
    assert str(tools.ParseError("made here", line=2)) == "made here at 2"
    assert tools.identity(error).line == 4


@pytest.mark.parametrize("name", ["interrupt", "quit"])
def test_nothing_the_code_raises_ends_the_test_process(tools: Any, name: str) -> None:
    with pytest.raises(RemoteExit):
        tools.fail(name, 0)
    assert tools.identity(1) == 1


def test_the_code_exits_only_while_a_test_runs(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as ended:
        tools.fail("exit", 3)
    assert ended.value.code == 3
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with pytest.raises(RemoteExit, match="SystemExit"):
        tools.fail("exit", 3)


def test_iterators_are_pulled_from(tools: Any) -> None:
    numbers = tools.count_up()
    assert [next(numbers) for _ in range(3)] == [0, 1, 2]
    assert numbers.send(10) == 10
    numbers.close()
    assert list(numbers) == []
    assert list(tools.chain([1, 2])) == ["1", "2"]
    assert isinstance(numbers, collections.abc.Iterator)
    assert tools.chain([1]) != ["1"]
    assert list(zip(tools.count_up(), "ab", strict=False)) == [(0, "a"), (1, "b")]
    assert tools.views() == {"a"}
    with pytest.raises(KeyError):
        tools.count_up().throw(KeyError("x"))


def test_iterators_of_the_test_are_pulled_by_the_code(tools: Any) -> None:
    pulled: list[int] = []

    def endless() -> Iterator[int]:
        number = 0
        while True:
            pulled.append(number)
            yield number
            number += 1

    assert tools.first(endless()) == 0
    assert pulled == [0]
    assert tools.total(x * x for x in range(4)) == 14
    assert tools.total(map(int, "123")) == 6
    assert tools.total(iter([1, 2])) == 3


def test_functions_of_the_test_are_called_back(tools: Any, goods: Any) -> None:
    assert tools.keyed(["bb", "a"], key=len) == ["a", "bb"]
    assert tools.keyed(["B", "a"], key=str.lower) == ["a", "B"]
    assert tools.keyed([(1, 2), (2, 1)], key=operator.itemgetter(1)) == [(2, 1), (1, 2)]
    assert tools.apply(lambda *args, **kwargs: [args, kwargs], 1, b=2) == [(1,), {"b": 2}]
    seen: list[Any] = []
    tools.apply(seen.append, goods.Basket([1]))
    assert seen[0].items == [1]
    assert tools.apply(lambda: tools.apply(lambda: tools.identity(5))) == 5
    assert tools.apply(tools.identity, 3) == 3
    assert tools.in_threads(lambda x: tools.identity(x) + 1, list(range(20))) == list(range(1, 21))


def test_decorators_of_the_code(tools: Any) -> None:
    @tools.twice
    def three(extra: int = 0) -> int:
        """Say three."""
        return 3 + extra

    assert three() == 6
    assert three(extra=1) == 8
    assert (three.__name__, three.__doc__) == ("three", "Say three.")
    assert list(inspect.signature(three).parameters) == ["extra"]

    @tools.memoize
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert fibonacci(40) == 102334155

    @tools.memoize
    def endless(n: int) -> int:
        return endless(n + 1)

    with pytest.raises(RecursionError):
        endless(0)
    assert tools.identity(1) == 1


class MineError(Exception):
    pass


def test_an_exception_of_a_callback_comes_back_as_itself(tools: Any) -> None:
    error = MineError("mine")
    attempts: list[int] = []

    def failing() -> None:
        attempts.append(1)
        raise error

    with pytest.raises(MineError) as caught:
        tools.retry(failing, 3)
    assert caught.value is error
    assert len(attempts) == 3

    def parse() -> None:
        raise tools.ParseError("from the test", 1)

    assert tools.swallow(parse) == "ParseError"
    with pytest.raises(LookupError):
        tools.retry(lambda: {}["x"], 2, (ValueError,))


def test_an_outcome_of_the_test_cannot_be_swallowed(tools: Any) -> None:
    def unwanted() -> None:
        pytest.fail("must not be called")

    with pytest.raises(pytest.fail.Exception, match="must not be called"):
        tools.swallow(unwanted)
    assert tools.identity(1) == 1


@pytest.mark.parametrize("value", [MineError, threading.Thread(), unittest.TestCase(), {1: [pytest]}])
def test_other_objects_of_the_test_are_refused(tools: Any, value: Any) -> None:
    with pytest.raises(Unsendable, match="shared mode"):
        tools.identity(value)
    assert tools.identity(1) == 1


def test_async_code(tools: Any) -> None:
    assert asyncio.run(tools.later(1)) == 2

    async def several() -> list[Any]:
        both = await asyncio.gather(tools.later(1), tools.later(2))
        return [*both, *[item async for item in tools.stream(3)]]

    assert asyncio.run(several()) == [2, 3, 0, 1, 2]

    async def callback() -> int:
        await asyncio.sleep(0)
        return 5

    assert asyncio.run(tools.apply(callback)) == 5


def test_context_managers(tools: Any) -> None:
    log: list[str] = []
    with tools.tagged(log) as size:
        assert size == 1
    with tools.forgiving(ValueError):
        raise ValueError("forgiven")
    with pytest.raises(KeyError), tools.forgiving(ValueError):
        raise KeyError
    with pytest.raises(AssertionError), tools.forgiving(AssertionError):
        assert size == 2
    with pytest.raises(ValueError, match="not by the test"), tools.forgiving(ValueError):
        tools.fail("value", "not by the test")
    with pytest.raises(ValueError, match="int"), tools.forgiving(ValueError):
        int("no number")


def test_what_is_printed_can_be_captured(tools: Any, capsys: Any) -> None:
    tools.say("hello")
    assert capsys.readouterr() == ("hello\n", "oh\n")
    tools.shout()
    assert len(capsys.readouterr().out) < 2_000_000


def test_the_recursion_limit_is_set_back(tools: Any) -> None:
    assert tools.low_limit() == "ok"
    nested: list[Any] = []
    for _ in range(500):
        nested = [nested]
    assert tools.identity(nested) is nested
