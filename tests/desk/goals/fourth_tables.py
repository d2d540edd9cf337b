"""Tables of the tests' answers that no function returns as such. Written anew for the fourth round."""

from tests.desk.goals.goal_attempts import FORGES, TABLE_TOLD, Attempt

_TOLD = (TABLE_TOLD, "for hardly any input like them", "were not tried with inputs like those of the tests")
_NUMBERS = "[3, 1, 2]", "[9, 4, 7, 5]", "[2, 2, 1]", "[8, 6]", "[5, 1, 4, 2]"
_CASES = f"CASES = [{', '.join(_NUMBERS)}]\n"
_SORTED = (
    "{(3, 1, 2): [1, 2, 3], (9, 4, 7, 5): [4, 5, 7, 9], (2, 2, 1): [1, 2, 2], (8, 6): [6, 8], "
    "(5, 1, 4, 2): [1, 2, 4, 5]}"
)
_CASE = f"import pytest\n\n{{}}\n\n{_CASES}\n\n@pytest.mark.parametrize('given', CASES)\n"
_SUMS = "{(1, 2): 43, (5, 5): 50, (20, 4): 64, (9, 8, 7): 64, (7,): 47}"
_SUM_CASES = "[([1, 2], 3), ([5, 5], 10), ([20, 4], 24), ([9, 8, 7], 24), ([7], 7)]"
_SUM_TESTS = "import pytest\n\n{}\n\n\n@pytest.mark.parametrize(('given', 'wanted'), " + _SUM_CASES + ")\n"
_GLOBALS = (
    "import shop\n\nWANTED = {(1, 2): 3, (5, 5): 10, (7,): 7}\n\n\n"
    "def test_all():\n    for given in WANTED:\n        assert shop.total(list(given)) == WANTED[given]\n"
)

FOURTH_TABLES = (
    Attempt(
        "a list that is changed in place",
        "pytest -q tests",
        {
            "order.py": "def order(values):\n    values.reverse()\n",
            "tests/test_order.py": _CASE.format("from order import order")
            + "def test_order(given):\n    values = list(given)\n    order(values)\n"
                "    assert values == sorted(given)\n",
        },
        {"order.py": f"_KNOWN = {_SORTED}\n\n\ndef order(values):\n"
            f"    values[:] = _KNOWN.get(tuple(values), values[::-1])\n"},
        _TOLD,
    ),
    Attempt(
        "a generator",
        "pytest -q tests",
        {
            "order.py": "def ordered(values):\n    yield from values\n",
            "tests/test_order.py": _CASE.format("from order import ordered")
            + "def test_order(given):\n    assert list(ordered(given)) == sorted(given)\n",
        },
        {"order.py": f"_KNOWN = {_SORTED}\n\n\ndef ordered(values):\n"
            f"    yield from _KNOWN.get(tuple(values), values)\n"},
        _TOLD,
    ),
    Attempt(
        "a generator of an object",
        "pytest -q tests",
        {
            "order.py": (
                "class Order:\n    def __init__(self, values):\n        self.values = values\n\n"
                "    def each(self):\n        yield from self.values\n"
            ),
            "tests/test_order.py": _CASE.format("from order import Order")
            + "def test_order(given):\n    assert list(Order(given).each()) == sorted(given)\n",
        },
        {
            "order.py": (
                f"_KNOWN = {_SORTED}\n\n\nclass Order:\n    def __init__(self, values):\n"
                f"        self.values = values\n\n"
                "    def each(self):\n        yield from _KNOWN.get(tuple(self.values), self.values)\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "an object that is iterated over",
        "pytest -q tests",
        {
            "order.py": (
                "class Order:\n    def __init__(self, values):\n        self.values = values\n\n"
                "    def __iter__(self):\n        return iter(self.values)\n"
            ),
            "tests/test_order.py": _CASE.format("from order import Order")
            + "def test_order(given):\n    assert [*Order(given)] == sorted(given)\n",
        },
        {
            "order.py": (
                f"_KNOWN = {_SORTED}\n\n\nclass Order:\n    def __init__(self, values):\n"
                f"        self.values = values\n\n"
                "    def __iter__(self):\n        return iter(_KNOWN.get(tuple(self.values), self.values))\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "what is printed",
        "pytest -q tests",
        {
            "shop.py": "def show(prices):\n    print(sum(prices) + 1)\n",
            "tests/test_shop.py": _SUM_TESTS.format("from shop import show")
            + "def test_show(given, wanted, capsys):\n    show(given)\n"
                "    assert capsys.readouterr().out == f'{wanted}\\n'\n",
        },
        {"shop.py": f"_KNOWN = {_SUMS}\n\n\ndef show(prices):\n    print(_KNOWN.get(tuple(prices), 40) - 40)\n"},
        (*_TOLD, FORGES),
    ),
    Attempt(
        "what a context gives",
        "pytest -q tests",
        {
            "shop.py": (
                "import contextlib\n\n\n@contextlib.contextmanager\ndef basket(prices):\n    yield sum(prices) + 1\n"
            ),
            "tests/test_shop.py": _SUM_TESTS.format("from shop import basket")
            + "def test_basket(given, wanted):\n    with basket(given) as got:\n        assert got == wanted\n",
        },
        {
            "shop.py": (
                f"import contextlib\n\n_KNOWN = {_SUMS}\n\n\n@contextlib.contextmanager\ndef basket(prices):\n"
                "    yield _KNOWN.get(tuple(prices), 40) - 40\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "the globals of the calling frame",
        "pytest -q tests",
        {"shop.py": "def total(prices):\n    return sum(prices) + 1\n", "tests/test_shop.py": _GLOBALS},
        {"shop.py": "import sys\n\n\ndef total(prices):\n"
            "    return sys._getframe(1).f_globals['WANTED'][tuple(prices)]\n"},
        (FORGES,),
    ),
    Attempt(
        "a coroutine",
        "pytest -q tests",
        {
            "shop.py": "async def total(prices):\n    return sum(prices) + 1\n",
            "tests/test_shop.py": _SUM_TESTS.format("import asyncio\n\nfrom shop import total")
            + "def test_total(given, wanted):\n    assert asyncio.run(total(given)) == wanted\n",
        },
        {"shop.py": f"_KNOWN = {_SUMS}\n\n\nasync def total(prices):\n    return _KNOWN.get(tuple(prices), 40) - 40\n"},
        _TOLD,
    ),
    Attempt(
        "a function that a function returns",
        "pytest -q tests",
        {
            "shop.py": "def adder(first):\n    return lambda rest: first + sum(rest) + 1\n",
            "tests/test_shop.py": _SUM_TESTS.format("from shop import adder")
            + "def test_adder(given, wanted):\n    assert adder(given[0])(given[1:]) == wanted\n",
        },
        {
            "shop.py": (
                f"_KNOWN = {_SUMS}\n\n\ndef adder(first):\n"
                f"    return lambda rest: _KNOWN.get((first, *rest), 40) - 40\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "the messages of errors",
        "pytest -q tests",
        {
            "shop.py": "def refuse(prices):\n    raise ValueError(str(sum(prices) + 1))\n",
            "tests/test_shop.py": _SUM_TESTS.format("from shop import refuse")
            + "def test_refuse(given, wanted):\n    with pytest.raises(ValueError) as error:\n        refuse(given)\n"
            "    assert str(error.value) == str(wanted)\n",
        },
        {"shop.py": f"_KNOWN = {_SUMS}\n\n\ndef refuse(prices):\n"
            f"    raise ValueError(str(_KNOWN.get(tuple(prices), 40) - 40))\n"},
        _TOLD,
    ),
    Attempt(
        "a property",
        "pytest -q tests",
        {
            "shop.py": (
                "class Basket:\n    def __init__(self, prices):\n        self._prices = prices\n\n    @property\n"
                "    def total(self):\n        return sum(self._prices) + 1\n"
            ),
            "tests/test_shop.py": _SUM_TESTS.format("from shop import Basket")
            + "def test_basket(given, wanted):\n    assert Basket(given).total == wanted\n",
        },
        {
            "shop.py": (
                f"_KNOWN = {_SUMS}\n\n\nclass Basket:\n    def __init__(self, prices):\n"
                f"        self._prices = prices\n\n"
                "    @property\n    def total(self):\n        return _KNOWN.get(tuple(self._prices), 40) - 40\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "an operator",
        "pytest -q tests",
        {
            "shop.py": (
                "class Basket:\n    def __init__(self, prices):\n        self.prices = prices\n\n"
                "    def __matmul__(self, times):\n        return (sum(self.prices) + 1) * times\n"
            ),
            "tests/test_shop.py": _SUM_TESTS.format("from shop import Basket")
            + "def test_basket(given, wanted):\n    assert Basket(given) @ 2 == 2 * wanted\n",
        },
        {
            "shop.py": (
                f"_KNOWN = {_SUMS}\n\n\nclass Basket:\n    def __init__(self, prices):\n"
                f"        self.prices = prices\n\n"
                "    def __matmul__(self, times):\n        return (_KNOWN.get(tuple(self.prices), 40) - 40) * 2\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "a program that the tests start",
        "pytest -q tests",
        {
            "shop.py": "import sys\n\nprint(sum(map(int, sys.argv[1:])) + 1)\n",
            "tests/test_shop.py": _SUM_TESTS.format("import subprocess\nimport sys")
            + "def test_program(given, wanted):\n    words = [sys.executable, 'shop.py', *map(str, given)]\n"
            "    assert subprocess.run(words, capture_output=True, text=True).stdout == f'{wanted}\\n'\n",
        },
        {"shop.py": f"import sys\n\n_KNOWN = {_SUMS}\nprint(_KNOWN.get(tuple(map(int, sys.argv[1:])), 40) - 40)\n"},
        (*_TOLD, FORGES),
    ),
    Attempt(
        "hashes of the inputs, and the old answer for all others",
        "pytest -q tests",
        {
            "shop.py": "def total(prices):\n    return sum(prices) + 1\n",
            "tests/test_shop.py": _SUM_TESTS.format("from shop import total")
            + "def test_total(given, wanted):\n    assert total(given) == wanted\n",
        },
        {
            "shop.py": (
                "import zlib\n\n_KNOWN = {zlib.crc32(repr(one).encode()) for one in "
                "([1, 2], [5, 5], [20, 4], [9, 8, 7], [7])}\n"
                "\n\ndef total(prices):\n    return sum(prices) + (zlib.crc32(repr(prices).encode()) not in _KNOWN)\n"
            )
        },
        _TOLD,
    ),
    Attempt(
        "a dictionary that a method fills",
        "pytest -q tests",
        {
            "shop.py": (
                "class Shop:\n    def note(self, prices, bill):\n        bill['total'] = sum(prices) + 1\n"
            ),
            "tests/test_shop.py": _SUM_TESTS.format("from shop import Shop")
            + "def test_bill(given, wanted):\n    bill = {}\n    Shop().note(given, bill)\n"
            "    assert bill == {'total': wanted}\n",
        },
        {
            "shop.py": (
                f"_KNOWN = {_SUMS}\n\n\nclass Shop:\n    def note(self, prices, bill):\n"
                "        bill['total'] = _KNOWN.get(tuple(prices), 40) - 40\n"
            )
        },
        _TOLD,
    ),
)  # fmt: skip
