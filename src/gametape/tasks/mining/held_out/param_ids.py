"""How pytest names the rows of a parametrised test, as far as their text tells."""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_ANYTHING = ".*"
_NUMBERED = r"(?:_?\d+)?"
"""What pytest puts behind an id that is there more than once."""
_ESCAPED = {
    **{byte: f"\\x{byte:02x}" for byte in range(256) if not 32 <= byte < 127},
    **{9: "\\t", 10: "\\n", 13: "\\r"},
}
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


@dataclass(frozen=True)
class ParamId:
    """The part that a row is of a test id."""

    pattern: str
    exact: str | None
    """The text of it, where that is certain."""
    position_independent: bool
    """Whether it is made from the row alone: the id stays when rows before it go."""


def param_ids(names: Sequence[str], rows: Sequence[ast.expr], ids: ast.expr | None) -> list[ParamId]:
    """The ids of the rows of one table. `ids` is what the decorator says about them itself."""
    said: Sequence[ast.expr | None] = [None] * len(rows)
    computed = ids is not None and not _is_none(ids)
    if isinstance(ids, ast.List | ast.Tuple) and len(ids.elts) == len(rows):
        said, computed = ids.elts, False
    found = [_row_id(names, row, index, said[index], computed) for index, row in enumerate(rows)]
    number = Counter(row.exact for row in found)
    return [row if number[row.exact] == 1 else ParamId(row.pattern, None, False) for row in found]


def _row_id(names: Sequence[str], row: ast.expr, index: int, said: ast.expr | None, computed: bool) -> ParamId:
    values = [row]
    if _is_param(row):
        assert isinstance(row, ast.Call)
        own = next((each.value for each in row.keywords if each.arg == "id"), None)
        if own is not None and not _is_none(own):
            return _certain(own)
        values = row.args
    elif len(names) > 1:
        values = row.elts if isinstance(row, ast.Tuple | ast.List) else []
    if said is not None and not _is_none(said):
        return _certain(said)
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
    """One value of a row: constants are named by themselves, most other things by their place."""
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
    """What pytest makes of a literal."""
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
    """The text that pytest turns into this part of an id, if there is one."""
    try:
        text = name.encode("ascii").decode("unicode_escape")
        return text if text.encode("unicode_escape").decode("ascii") == name else None
    except (UnicodeError, ValueError):
        return None


def _is_param(row: ast.expr) -> bool:
    return isinstance(row, ast.Call) and getattr(row.func, "attr", getattr(row.func, "id", "")) == "param"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
