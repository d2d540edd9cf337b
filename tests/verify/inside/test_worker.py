"""Honest code behind the proxy behaves as if it were imported: a worker process serves small modules."""

import asyncio
import collections.abc
import copy
import dataclasses
import importlib
import inspect
import io
import json
import operator
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gametape.verify.inside import proxy
from gametape.verify.inside.proxy_errors import RemoteExit
from gametape.verify.inside.wire import Unsendable, WireError
from tests.verify.inside.workshop_tools import serving, write_code

CODE = {
    "shop/__init__.py": '"""A shop."""\nfrom .goods import Basket\nVERSION = "1.2"\n',
    "shop/goods.py": """
        import collections, dataclasses, enum, functools

        LIMITS = {"a": [1, 2]}
        calls = 0

        class Colour(enum.Enum):
            RED = 1
            BLUE = 2

        class Number(enum.IntEnum):
            ONE = 1

        @dataclasses.dataclass(frozen=True, order=True)
        class Price:
            amount: int
            currency: str = "EUR"

            def __add__(self, other):
                if not isinstance(other, Price):
                    return NotImplemented
                return Price(self.amount + other.amount, self.currency)

            def __radd__(self, other):
                return self if other == 0 else NotImplemented

            @classmethod
            def parse(cls, text):
                amount, currency = text.split()
                return cls(int(amount), currency)

            @property
            def doubled(self):
                return self.amount * 2

        class Basket:
            limit = 3

            def __init__(self, items=()):
                self.items = list(items)
                self.closed = False

            def __len__(self): return len(self.items)
            def __iter__(self): return iter(self.items)
            def __contains__(self, item): return item in self.items
            def __getitem__(self, key): return self.items[key]
            def __setitem__(self, key, value): self.items[key] = value
            def __delitem__(self, key): del self.items[key]
            def __bool__(self): return bool(self.items)
            def __call__(self, item): self.items.append(item); return self
            def __str__(self): return "+".join(map(str, self.items))
            def __format__(self, spec): return f"{spec}:{str(self)}"
            def __enter__(self): return self
            def __exit__(self, *error): self.closed = True
            def __eq__(self, other):
                return list(self) == list(other) if hasattr(other, "__iter__") else NotImplemented
            def add(self, *items, first=None):
                self.items += items
                return self
            def total(self, key=lambda item: item): return sum(map(key, self.items))

        class BigBasket(Basket):
            limit = 30

        class Secret:
            pass

        def secret(): return [Secret()]
        def colour(): return Colour.RED
        def is_red(colour): return colour is Colour.RED
        def count(text): return collections.Counter(text)
        def one(): return Number.ONE
        def touch():
            global calls
            calls += 1

        @functools.lru_cache
        def square(x): return x * x
    """,
    "tools.py": '''
        import asyncio, contextlib, functools, json, sys, threading, concurrent.futures

        class ParseError(ValueError):
            """Bad text."""
            code = 7
            def __init__(self, message, line=0):
                super().__init__(message, line)
                self.line = line
            def __str__(self):
                return f"{self.args[0]} at {self.line}"
            def where(self, prefix):
                return f"{prefix}{self.line}"

        class DeepError(ParseError): pass
        class MissingKey(KeyError, LookupError): pass
        class Quit(BaseException): pass
        class FileTrouble(OSError): pass

        def identity(x): return x
        def fail(name, *args):
            raise {"parse": ParseError, "deep": DeepError, "key": MissingKey, "exit": SystemExit, "quit": Quit,
                   "interrupt": KeyboardInterrupt, "value": ValueError, "file": FileTrouble, "os": FileNotFoundError,
                   "unicode": UnicodeDecodeError, "stop": StopIteration}[name](*args)
        def fail_from():
            try:
                {}["x"]
            except KeyError as error:
                raise ParseError("no x", 3) from error
        def load(text): return json.loads(text)
        def sort(rows):
            rows.sort()
        def fill(data, deep):
            data["new"] = {1}; deep[0][1].add(5); deep[0][2].extend(b"yz"); deep.append([len(deep)])
            return deep
        def spoil(rows):
            rows.append(object())
        def spoil_and_fail(rows):
            rows.append(1); raise ValueError("late")
        def apply(function, *args, **kwargs): return function(*args, **kwargs)
        def keyed(items, key): return sorted(items, key=key)
        def twice(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs) * 2
            return wrapper
        def memoize(function):
            cache = {}
            @functools.wraps(function)
            def wrapper(n):
                if n not in cache:
                    cache[n] = function(n)
                return cache[n]
            return wrapper
        def retry(function, times, errors=(Exception,)):
            for left in range(times, 0, -1):
                try:
                    return function()
                except errors:
                    if left == 1:
                        raise
        def swallow(function):
            try:
                function()
            except BaseException as error:
                return type(error).__name__
        def in_threads(function, items):
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                return list(pool.map(function, items))
        def total(numbers): return sum(numbers)
        def first(numbers): return next(iter(numbers))
        def count_up(n=0):
            while True:
                got = yield n
                n = n + 1 if got is None else got
        def views(): return {"a": 1}.keys()
        def chain(xs): return map(str, xs)
        async def later(x):
            await asyncio.sleep(0)
            return x + 1
        async def stream(n):
            for i in range(n):
                yield i
        @contextlib.contextmanager
        def tagged(log):
            log.append("in")
            try:
                yield len(log)
            finally:
                log.append("out")
        @contextlib.contextmanager
        def forgiving(kind):
            with contextlib.suppress(kind):
                yield
        def say(text):
            print(text); print("oh", file=sys.stderr)
        def shout(): print("x" * 3_000_000)
        def deep():
            return deep()
        def low_limit():
            sys.setrecursionlimit(60)
            return "ok"
        def add(a: int, b=2, *, c=(1, 2)): return a + b
    ''',
    "stars.py": """
        __all__ = ["helper", "len", "math", "pytest_configure"]
        def helper(): return 1
        len = math = pytest_configure = helper
    """,
    "broken.py": "import nothing_of_this_name\n",
    "wrong.py": "def (:\n",
    "rude.py": "raise SystemExit(0)\n",
}
CLASSES = ["shop.goods:Basket", "shop.goods:Price", "shop.goods:Colour"]


@pytest.fixture(scope="module", autouse=True)
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("code")
    write_code(root, CODE)
    modules = ["shop.goods", "tools", "stars", "broken", "wrong", "rude"]
    with serving() as sock:
        proxy.install(sock, modules, CLASSES, [str(root)])
        yield
    sys.meta_path.pop(0)
    for name in ["shop", *modules]:
        sys.modules.pop(name, None)


def load(name: str) -> Any:
    return importlib.import_module(name)


@pytest.fixture
def tools() -> Any:
    return load("tools")


@pytest.fixture
def goods() -> Any:
    return load("shop.goods")


def test_modules_are_imported_as_usual(goods: Any) -> None:
    shop = load("shop")
    assert shop.goods is goods
    assert shop.VERSION == "1.2"
    assert shop.__doc__ == "A shop."
    assert shop.Basket is goods.Basket
    assert "Price" in dir(goods)
    from shop.goods import square

    assert square(4) == 16
    assert square.cache_info()[1] == 1
    with pytest.raises(ImportError, match="cannot import name 'nope'"):
        from shop.goods import nope  # noqa: F401
    with pytest.raises(AttributeError, match="nope"):
        _ = goods.nope
    with pytest.raises(ModuleNotFoundError):
        load("shop.other")


def test_an_import_that_fails_there_fails_here() -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        load("broken")
    with pytest.raises(SyntaxError):
        load("wrong")
    with pytest.raises(RemoteExit, match="SystemExit"):
        load("rude")


def test_module_data_is_read_anew_and_patches_stay_here(goods: Any, tools: Any, monkeypatch: Any) -> None:
    goods.LIMITS["a"].append(3)
    assert goods.LIMITS == {"a": [1, 2]}
    before = goods.calls
    goods.touch()
    assert goods.calls == before + 1
    monkeypatch.setattr(tools, "identity", lambda _: "patched")
    assert tools.identity(1) == "patched"
    monkeypatch.undo()
    assert tools.identity(1) == 1


def test_a_star_import_replaces_nothing() -> None:
    namespace: dict[str, Any] = {"math": 1}
    exec("from stars import *", namespace)
    assert namespace["helper"]() == 1
    assert namespace["math"] == 1
    assert not {"len", "pytest_configure"} & set(namespace)
    assert "len" in load("stars").__all__


def test_functions_keep_their_names_and_signatures(tools: Any) -> None:
    assert tools.add.__name__ == "add"
    assert list(inspect.signature(tools.add).parameters) == ["a", "b", "c"]
    assert inspect.signature(tools.add).parameters["c"].default == (1, 2)
    assert tools.add(1, c=0) == 3
    with pytest.raises(TypeError, match="argument"):
        tools.add()


@pytest.mark.parametrize(
    "value",
    [
        *(0, -5, 1 << 200, 1.5, "é\ud800", b"x", None, True, [1, (2, {3})], {"a": {1: None}}, range(3), ...),
        *(int, KeyError, json.JSONDecodeError, Path("a/b")),
    ],
)
def test_plain_data_there_and_back(tools: Any, value: Any) -> None:
    found = tools.identity(value)
    assert found == value
    assert type(found) is type(value)


def test_an_argument_that_comes_back_is_the_same_object(tools: Any) -> None:
    for value in ([1], {1: 2}, {3}, bytearray(b"x"), len, print, lambda: 0):
        assert tools.identity(value) is value


def test_subclasses_of_builtins_arrive_as_their_base(goods: Any) -> None:
    assert goods.count("aab") == {"a": 2, "b": 1}
    assert type(goods.count("aab")) is dict
    assert goods.one() == 1
    assert type(goods.one()) is int
    assert goods.Number is not None


def test_an_object_of_an_undeclared_class_is_refused_by_name(goods: Any, tools: Any) -> None:
    with pytest.raises(TypeError, match=r"shop\.goods\.Secret is not plain data"):
        goods.secret()
    with pytest.raises(TypeError, match="Secret"):
        goods.Secret()
    assert tools.identity(1) == 1


def test_handles_do_what_their_class_does(goods: Any) -> None:
    basket = goods.Basket([1, 2])
    assert isinstance(basket, goods.Basket)
    assert not isinstance(basket, goods.Price)
    assert (len(basket), list(basket), 2 in basket, basket[0], basket[0:1]) == (2, [1, 2], True, 1, [1])
    basket[0] = 5
    del basket[1]
    basket.items = [*basket.items, 7]
    assert basket.items == [5, 7]
    assert basket.add(1, 2, first=None) is basket
    assert basket(9) is basket
    assert (str(basket), f"{basket:x}") == ("5+7+1+2+9", "x:5+7+1+2+9")
    assert basket.total() == 24
    assert basket.total(key=lambda item: -item) == -24
    assert bool(basket)
    assert not goods.Basket()
    assert callable(basket)
    assert not callable(goods.Price(1))
    with basket as entered:
        assert entered is basket
    assert basket.closed is True
    with pytest.raises(TypeError, match="unhashable"):
        hash(basket)
    with pytest.raises(AttributeError, match="nope"):
        _ = basket.nope
    with pytest.raises(IndexError):
        _ = basket[99]
    assert copy.deepcopy(basket) == basket
    assert copy.deepcopy(basket) is not basket
    assert "total" in dir(basket)
    assert next(map(basket.add, [0])) is basket


def test_handles_of_a_subclass_of_a_declared_class(goods: Any) -> None:
    big = goods.BigBasket([1])
    assert isinstance(big, goods.Basket)
    assert issubclass(goods.BigBasket, goods.Basket)
    assert (type(big).__name__, big.limit, goods.Basket.limit) == ("BigBasket", 30, 3)


def test_dataclasses_compare_hash_and_calculate(goods: Any) -> None:
    price = goods.Price(3)
    assert price == goods.Price(3)
    assert price != goods.Price(4)
    assert price < goods.Price(4)
    assert hash(price) == hash(goods.Price(3))
    assert {price, goods.Price(3)} == {price}
    assert sorted([goods.Price(2), goods.Price(1)])[0].amount == 1
    assert (price + goods.Price(1)).amount == 4
    assert sum([goods.Price(1), goods.Price(2)]).amount == 3
    with pytest.raises(TypeError, match="unsupported operand"):
        price + 1
    assert repr(price) == "Price(amount=3, currency='EUR')"
    assert goods.Price.parse("5 USD").currency == "USD"
    assert price.doubled == 6
    with pytest.raises(dataclasses.FrozenInstanceError):
        price.amount = 4
    assert price != 3
    assert vars(price) == {"amount": 3, "currency": "EUR"}


def test_enums_stay_members(goods: Any) -> None:
    assert goods.colour() is goods.Colour.RED
    assert goods.Colour(2) is goods.Colour.BLUE
    assert goods.Colour["RED"] is goods.Colour.RED
    assert [member.name for member in goods.Colour] == ["RED", "BLUE"]
    assert len(goods.Colour) == 2
    assert goods.Colour.RED in goods.Colour
    assert goods.is_red(goods.Colour.RED)
    assert goods.colour() != goods.Colour.BLUE
    assert {goods.Colour.RED: 1}[goods.colour()] == 1


def test_a_handle_equals_plain_data_when_its_class_says_so_truly(goods: Any) -> None:
    assert goods.Basket([1, 2]) == [1, 2]
    assert goods.Basket([1, 2]) == goods.Basket([1, 2])
    assert goods.Basket([1, 2]) != [1, 3]
    assert goods.Basket([]) != 3
    assert goods.Basket([1]) != pytest.approx(5)


def test_a_test_cannot_derive_from_a_class(goods: Any, tools: Any) -> None:
    for base in (goods.Basket, tools.ParseError):
        with pytest.raises(TypeError, match="shared mode"):
            type(base)("Mine", (base,), {})


def test_arguments_changed_in_place_are_changed_here(tools: Any) -> None:
    rows = [[3, 1], [1, 2]]
    tools.sort(rows)
    assert rows == [[1, 2], [3, 1]]
    data: dict[str, Any] = {}
    inner = {1}
    deep: list[Any] = [["a", inner, bytearray(b"x")]]
    assert tools.fill(data, deep) is deep
    assert data == {"new": {1}}
    assert deep == [["a", {1, 5}, bytearray(b"xyz")], [1]]
    assert inner == {1, 5}
    late: list[int] = []
    with pytest.raises(ValueError, match="late"):
        tools.spoil_and_fail(late)
    assert late == [1]
    with pytest.raises(TypeError, match="object is not plain data"):
        tools.spoil([])


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


@pytest.mark.parametrize("name", ["exit", "interrupt", "quit"])
def test_nothing_the_code_raises_ends_the_test_process(tools: Any, name: str) -> None:
    with pytest.raises(RemoteExit):
        tools.fail(name, 0)
    assert tools.identity(1) == 1


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


@pytest.mark.parametrize(
    "value", [object(), io.StringIO("x"), MineError, threading.Lock(), mock.Mock(), {1: [object()]}]
)
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

    async def callback() -> None:
        pass

    with pytest.raises(TypeError, match="async function"):
        tools.apply(callback)


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


def test_handles_are_released(goods: Any) -> None:
    session = goods._gametape_session
    basket = goods.Basket([1])
    again = [basket.add() for _ in range(10)]
    assert all(each is basket for each in again)
    del basket, again
    assert session._releases[-1][1] == 11
    assert goods.Basket([2])[0] == 2


def test_a_module_the_test_process_needs_is_not_replaced() -> None:
    for name in ("json", "colorsys", "pytest", "gametape.core"):
        with pytest.raises(ValueError, match="needs a module of this name"):
            proxy.install(None, [name])  # type: ignore[arg-type]


def test_unserved_modules_stay_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        load("stars_and_more")
    assert issubclass(WireError, Exception)
