"""The order of the modules, checked on the source itself."""

import ast
from pathlib import Path
from unittest import mock

import pytest

from shop import checkout, storage

SHOP = Path(__file__).parent.parent / "shop"
ALLOWED = {"pricing": set(), "storage": {"pricing"}, "checkout": {"pricing", "storage"}}


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_imports(name):
    tree = ast.parse((SHOP / f"{name}.py").read_text())
    seen = {node.module.removeprefix("shop.") for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert seen & set(ALLOWED) <= ALLOWED[name]


def test_other_rates():
    with mock.patch.object(storage, "load_rates", return_value={"moon": 50}):
        assert checkout.quote([("flag", 100, 1)], "moon") == 150
