"""Pytest's ids, as computed and as pytest itself makes them."""

import ast
from pathlib import Path

import pytest

from gametape.syntax.pytest_ids import param_ids, split_test_id

ROWS = [
    "1",
    "-1.5",
    "None",
    "'a b'",
    "'ü\\n'",
    "b'\\x00x'",
    "[1]",
    "{}",
    "lambda: 0",
    "pytest.param(3, id='own')",
    "''",
]


def test_split() -> None:
    assert split_test_id("a/b.py::C::test_m[x::y[0]]") == ("a/b.py", "C::test_m")


def test_computed_ids_are_those_of_pytest(tmp_path: Path) -> None:
    table = f"[{', '.join(ROWS)}]"
    file = tmp_path / "test_ids.py"
    file.write_text(f"import pytest\n@pytest.mark.parametrize('x', {table})\ndef test_a(x): pass\n")
    collected: list[str] = []

    class Plugin:
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            collected.extend(item.name for item in session.items)

    pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(file)], [Plugin()])
    node = ast.parse(table, mode="eval").body
    assert isinstance(node, ast.List)
    assert [f"test_a[{found.exact}]" for found in param_ids(["x"], node.elts, None)] == collected


def test_an_id_that_is_there_twice_is_not_certain() -> None:
    rows = [ast.Constant(1), ast.Constant(1), ast.Constant(2)]
    assert [found.exact for found in param_ids(["x"], rows, None)] == [None, None, "2"]
