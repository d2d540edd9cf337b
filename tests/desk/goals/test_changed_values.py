"""Flags, tolerances, tables and classes of the product that tests read are named when their value changes."""

import pytest

from gametape.desk.goals.changed_values import changed_values
from gametape.record.source_tree import SourceTree

_TEST = "import shop\nfrom shop import ShopError\n\n\ndef test():\n    assert shop.HAS_TAX and shop.NAMES, ShopError\n"


def _changed(before: str, after: str) -> list[str]:
    start = SourceTree({"shop.py": before.encode(), "tests/test_shop.py": _TEST.encode()})
    return changed_values(start, SourceTree({"shop.py": after.encode()}).overlaid_on(start), ["tests"])


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("HAS_TAX = True\n", "HAS_TAX = False\n", ["shop.HAS_TAX"]),
        ("NAMES = {'a': 1, 'b': 2}\n", "NAMES: dict = {'a': 1}\n", ["shop.NAMES"]),
        ("class ShopError(Exception):\n    pass\n", "ShopError = Exception\n", ["shop.ShopError"]),
        ("class ShopError(Exception):\n    pass\n", "class ShopError(Exception):\n    code = 1\n", []),
        ("OTHER = 1\n", "OTHER = 2\n", []),
        ("HAS_TAX = True\n", "HAS_TAX =   True  # as it was\n", []),
    ],
)
def test_only_values_that_tests_read_and_that_changed_are_named(before: str, after: str, named: list[str]) -> None:
    assert _changed(before, after) == named
