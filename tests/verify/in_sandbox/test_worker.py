"""Honest code behind the proxy behaves as if it were imported: its modules, classes and data."""

import collections
import copy
import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from gametape.verify.in_sandbox import proxy
from gametape.verify.in_sandbox.wire import WireError
from tests.verify.in_sandbox.shop import load

pytestmark = pytest.mark.usefixtures("served")


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
    with pytest.raises(SystemExit):
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


def test_undeclared_subclasses_of_builtins_arrive_as_their_base(goods: Any) -> None:
    assert goods.count("aab") == {"a": 2, "b": 1}
    assert type(goods.count("aab")) is collections.Counter
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
    strange: list[Any] = []
    tools.spoil(strange)
    assert [type(each).__name__ for each in strange] == ["object"]


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
            proxy.install_proxy(None, [name])  # type: ignore[arg-type]


def test_unserved_modules_stay_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        load("stars_and_more")
    assert issubclass(WireError, Exception)
