"""Pytest's test ids: split them, and compute how pytest names the rows of a parametrised test."""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.syntax.definitions import last_name

_ANYTHING = ".*"
_NUMBERED = r"(?:_?\d+)?"
"""What pytest puts behind an id that is there more than once."""
_ESCAPED = {
    **{byte: f"\\x{byte:02x}" for byte in range(256) if not 32 <= byte < 127},
    **{9: "\\t", 10: "\\n", 13: "\\r"},
}
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


def split_test_id(test: str) -> tuple[str, str]:
    """The file and the function of a test id, `a.py` and `C::test_m` of `a.py::C::test_m[x]`."""
    file, _, rest = test.partition("::")
    return file, rest.partition("[")[0]


@dataclass(frozen=True)
class ParamId:
    """The part of a test id that names a row."""

    pattern: str
    exact: str | None
    """The text of it, where that is certain."""
    position_independent: bool
    """Whether it is made from the row alone: the id stays when rows before it go."""


def param_ids(names: Sequence[str], rows: Sequence[ast.expr], ids: ast.expr | None) -> list[ParamId]:
    """The ids of the rows of one table. `ids` is what the decorator says about them itself."""
    listed: Sequence[ast.expr | None] = [None] * len(rows)
    computed = ids is not None and not _is_none(ids)
    if isinstance(ids, ast.List | ast.Tuple) and len(ids.elts) == len(rows):
        listed, computed = ids.elts, False
    row_ids = [_row_id(names, row, index, listed[index], computed) for index, row in enumerate(rows)]
    number = Counter(row.exact for row in row_ids)
    return [row if number[row.exact] == 1 else ParamId(row.pattern, None, False) for row in row_ids]


def row_values(row: ast.expr, width: int) -> list[ast.expr]:
    """The values of a row for so many arguments; empty where several are needed and the row cannot be taken apart."""
    if is_param(row):
        assert isinstance(row, ast.Call)
        return row.args
    if width == 1:
        return [row]
    return row.elts if isinstance(row, ast.Tuple | ast.List) else []


def explicit_id(row: ast.expr) -> ast.expr | None:
    """The `id` that a `pytest.param` gives itself."""
    own = next((word.value for word in row.keywords if word.arg == "id"), None) if isinstance(row, ast.Call) else None
    return None if own is None or not is_param(row) or _is_none(own) else own


def _row_id(names: Sequence[str], row: ast.expr, index: int, listed: ast.expr | None, computed: bool) -> ParamId:
    own = explicit_id(row)
    if own is not None:
        return _certain(own)
    if listed is not None and not _is_none(listed):
        return _certain(listed)
    values = row_values(row, len(names))
    if computed or len(values) != len(names) or any(isinstance(value, ast.Starred) for value in values):
        return ParamId(_ANYTHING, None, False)
    parts = [_part(name, value, index) for name, value in zip(names, values, strict=True)]
    exact = None if any(part.exact is None for part in parts) else "-".join(part.exact or "" for part in parts)
    pattern = "-".join(part.pattern for part in parts) + _NUMBERED
    return ParamId(pattern, exact, all(part.position_independent for part in parts))


def _certain(node: ast.expr) -> ParamId:
    text = _constant(node)
    return ParamId(_ANYTHING, None, False) if text is None else ParamId(re.escape(text) + _NUMBERED, text, True)


def _part(name: str, value: ast.expr, index: int) -> ParamId:
    """The id of one value of a row: constants are named by themselves, most other things by their position."""
    text = _constant(value)
    if text is not None:
        return ParamId(re.escape(text), text, True)
    if isinstance(value, _DISPLAYS):
        text = f"{name}{index}"
        return ParamId(re.escape(text), text, False)
    if isinstance(value, ast.Lambda):
        return ParamId(re.escape("<lambda>"), "<lambda>", True)
    return ParamId(_ANYTHING, None, False)


def _constant(node: ast.expr) -> str | None:
    """The id that pytest gives a literal."""
    if isinstance(node, ast.UnaryOp | ast.BinOp):
        try:
            return str(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
    value = node.value if isinstance(node, ast.Constant) else ...
    if isinstance(value, str):
        return value.encode("unicode_escape", "surrogatepass").decode("ascii")
    if isinstance(value, bytes):
        return "".join(_ESCAPED.get(byte, chr(byte)) for byte in value)
    if value is None or isinstance(value, bool | int | float | complex):
        return str(value)
    return None


def literal_for_id(name: str) -> str | None:
    """The text for which pytest computes this part of an id, if there is one."""
    try:
        text = name.encode("ascii").decode("unicode_escape")
        return text if text.encode("unicode_escape").decode("ascii") == name else None
    except (UnicodeError, ValueError):
        return None


def is_param(row: ast.expr) -> bool:
    return isinstance(row, ast.Call) and last_name(row.func) == "param"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
