"""Files outside of the tests that only tests use."""

from gametape.desk.goals.suite_companions import find_companions
from gametape.record.source_tree import SourceTree

_FILES = {
    "src/shop/__init__.py": "from .core import total\n",
    "src/shop/core.py": "from shop import rates\n\n\ndef total(prices):\n    assert prices\n    return 0\n",
    "src/shop/rates.py": "from importlib.resources import files\n\nRATES = files('shop').joinpath('rates.json')\n",
    "src/shop/rates.json": "{}",
    "src/shop/cases.json": "[]",
    "src/shop/checks_of_totals.py": "from shop import total\n\n\ndef same(a, b):\n    assert total(a) == b\n",
    "src/shop/slow_total.py": "def total(prices):\n    return 0\n",
    "src/shop/plain.py": "def total(prices):\n    return 0\n",
    "src/shop/helpers.py": "X = 1\n",
    "src/shop/more.py": "from .helpers import X\n",
    "tests/conftest.py": "CASES = 'cases.json', 'rates.json'\n",
    "tests/test_shop.py": (
        "import shop\nfrom shop import plain, slow_total\nfrom shop.checks_of_totals import same\n"
        "from shop.helpers import X\n\n\n"
        "def test_a():\n    found = shop.total([1])\n    assert found == plain.total([1])\n\n\n"
        "def test_b():\n    same([1], 1)\n    assert slow_total.total([]) == 0\n"
    ),
}  # fmt: skip


def test_helpers_references_and_cases_are_the_tests() -> None:
    start = SourceTree({path: text.encode() for path, text in _FILES.items()})
    found = find_companions(start, ["tests"], [".", "src"])
    assert found.own == {"src/shop/checks_of_totals.py", "src/shop/slow_total.py", "src/shop/cases.json"}
    assert found.compared_with({"src/shop/plain.py"}) == {"src/shop/plain.py": ["src/shop/__init__.py"]}
    assert found.compared_with({"src/shop/core.py"}) == {}
