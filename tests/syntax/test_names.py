"""The import table and bound names."""

import ast

import pytest

from gametape.syntax.names import bound_names, import_origins, imported_modules, unbound_names


@pytest.mark.parametrize(
    ("source", "origins"),
    [
        ("import a.b", {"a": "a"}),
        ("import a.b as c", {"c": "a.b"}),
        ("from a import b as c", {"c": "a.b"}),
        ("from . import b", {"b": ".b"}),
        ("from ..a import b", {"b": "..a.b"}),
    ],
)
def test_what_an_imported_name_stands_for(source: str, origins: dict[str, str]) -> None:
    assert import_origins(ast.parse(source)) == origins


def test_what_may_be_a_module() -> None:
    assert imported_modules(ast.parse("import a.b\nfrom c import d")) == ["a.b", "c", "c.d"]


SOURCE = """
import os.path as path
def f(a, *b): c = 1
class C: d = 1
g, *h = 1, 2
with open() as i: j = [k for k in ()]
try: pass
except ValueError as m: pass
match g:
    case {"x": n, **o}: pass
    case [p, *q] as r: pass
"""


def test_bound_names_of_one_scope() -> None:
    assert bound_names(ast.parse(SOURCE)) == set("fCghijmnopqr") | {"path"}


def test_bound_names_of_all_scopes() -> None:
    assert bound_names(ast.parse(SOURCE), inner_scopes=True) == set("fabcCdghijkmnopqr") | {"path"}


def test_unbound_names() -> None:
    assert unbound_names(ast.parse("x = 1\ndef f(): return x + y")) == {"y"}
