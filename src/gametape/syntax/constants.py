"""Constant folding: what an expression must evaluate to, where its text alone decides it.

Hidden names (`"_ex" + "it"`, `chr(95)`, base64, rot13, reversed text) are read the way the interpreter would read them,
without running anything: only total functions over small constants are known here.
"""

import ast
import base64
import binascii
import codecs
import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

_MOST_ITEMS = 20_000
_MOST_STEPS = 4_000


class NotConstant(Exception):
    """The text does not decide this value."""


NameLookup = Callable[[ast.Name], ast.expr | None]


_NO_NAMES: Mapping[str, Any] = {}


def fold(node: ast.expr, lookup: NameLookup = lambda _: None, known: Mapping[str, Any] = _NO_NAMES) -> Any:
    """The constant this expression is, or raise `NotConstant`.

    `lookup` gives the one expression a name stands for; `known` gives values of names.
    """
    return _Folder(lookup).value(node, known)


def constant_value(node: ast.expr) -> object:
    """The value of a constant node; f-strings without holes are strings."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    assert isinstance(node, ast.Constant)
    return node.value


def is_literal(node: ast.expr) -> bool:  # noqa: PLR0911 - a case for each form
    """Whether an expression is a literal through and through."""
    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr():
            return all(isinstance(part, ast.Constant) for part in node.values)
        case ast.UnaryOp():
            return isinstance(node.op, ast.USub | ast.UAdd) and isinstance(node.operand, ast.Constant)
        case ast.List() | ast.Tuple() | ast.Set():
            return all(map(is_literal, node.elts))
        case ast.Dict():
            return all(key is not None and is_literal(key) for key in node.keys) and all(map(is_literal, node.values))
        case ast.BinOp():
            return isinstance(node.op, ast.Add) and is_literal(node.left) and is_literal(node.right)
    return False


class _Folder:
    def __init__(self, lookup: NameLookup) -> None:
        self._lookup = lookup
        self._steps = 0
        self._open: set[str] = set()

    def value(self, node: ast.expr, bound: Mapping[str, Any]) -> Any:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NotConstant
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise NotConstant
        try:
            result = method(node, bound)
        except (NotConstant, RecursionError):
            raise NotConstant from None
        except Exception:  # whatever a constant expression can raise, its value is not known
            raise NotConstant from None
        if isinstance(result, str | bytes | list | tuple | dict | set) and len(result) > _MOST_ITEMS:
            raise NotConstant
        if isinstance(result, int) and result.bit_length() > 4096:
            raise NotConstant
        return result

    def _Constant(self, node: ast.Constant, _bound: Mapping[str, Any]) -> Any:
        return node.value

    def _Name(self, node: ast.Name, bound: Mapping[str, Any]) -> Any:
        if node.id in bound:
            return bound[node.id]
        expression = self._lookup(node)
        if expression is None or node.id in self._open:
            raise NotConstant
        self._open.add(node.id)
        try:
            return self.value(expression, {})
        finally:
            self._open.discard(node.id)

    def _Tuple(self, node: ast.Tuple, bound: Mapping[str, Any]) -> Any:
        return tuple(self.value(item, bound) for item in node.elts)

    def _List(self, node: ast.List, bound: Mapping[str, Any]) -> Any:
        return [self.value(item, bound) for item in node.elts]

    def _Set(self, node: ast.Set, bound: Mapping[str, Any]) -> Any:
        return {self.value(item, bound) for item in node.elts}

    def _Dict(self, node: ast.Dict, bound: Mapping[str, Any]) -> Any:
        if None in node.keys:
            raise NotConstant
        return {
            self.value(key, bound): self.value(item, bound)
            for key, item in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _UnaryOp(self, node: ast.UnaryOp, bound: Mapping[str, Any]) -> Any:
        operand = self.value(node.operand, bound)
        match node.op:
            case ast.USub():
                return -operand
            case ast.UAdd():
                return +operand
            case ast.Invert():
                return ~operand
        return not operand

    def _BinOp(self, node: ast.BinOp, bound: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - a case for each form
        left, right = self.value(node.left, bound), self.value(node.right, bound)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return _product(left, right)
            case ast.Mod() if isinstance(left, int | float) or not _has_width(left):
                return left % right
            case ast.BitXor():
                return left ^ right
            case ast.BitOr():
                return left | right
            case ast.BitAnd():
                return left & right
            case ast.RShift():
                return left >> right
            case ast.FloorDiv():
                return left // right
            case ast.Div() if isinstance(left, int | float):
                return left / right
            case ast.LShift() if 0 <= right <= 512:
                return left << right
            case ast.Pow() if abs(left) <= 1 << 64 and 0 <= right <= 64:
                return left**right
        raise NotConstant

    def _JoinedStr(self, node: ast.JoinedStr, bound: Mapping[str, Any]) -> Any:
        return "".join(str(self.value(part, bound)) for part in node.values)

    def _FormattedValue(self, node: ast.FormattedValue, bound: Mapping[str, Any]) -> Any:
        if node.format_spec is not None or node.conversion != -1:
            raise NotConstant
        return self.value(node.value, bound)

    def _IfExp(self, node: ast.IfExp, bound: Mapping[str, Any]) -> Any:
        return self.value(node.body if self.value(node.test, bound) else node.orelse, bound)

    def _Subscript(self, node: ast.Subscript, bound: Mapping[str, Any]) -> Any:
        value = self.value(node.value, bound)
        if isinstance(node.slice, ast.Slice):
            edges = (node.slice.lower, node.slice.upper, node.slice.step)
            return value[slice(*(None if edge is None else self.value(edge, bound) for edge in edges))]
        return value[self.value(node.slice, bound)]

    def _ListComp(self, node: ast.ListComp | ast.GeneratorExp, bound: Mapping[str, Any]) -> Any:
        (loop,) = node.generators
        if loop.ifs or not isinstance(loop.target, ast.Name):
            raise NotConstant
        items = list(self.value(loop.iter, bound))
        return [self.value(node.elt, {**bound, loop.target.id: item}) for item in items[:_MOST_ITEMS]]

    _GeneratorExp = _ListComp

    def _Call(self, node: ast.Call, bound: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - a case for each form
        if isinstance(node.func, ast.Name) and node.func.id == "map" and len(node.args) == 2:
            items = self.value(node.args[1], bound)
            return [self._applied(node.args[0], item, bound) for item in items]
        values = [self.value(argument, bound) for argument in node.args]
        words = {word.arg: self.value(word.value, bound) for word in node.keywords if word.arg}
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _FUNCTIONS and not words:
                return _FUNCTIONS[name](*values)
            owner = self._owner(node.func.value, bound)
            if name == "format" and _has_width(owner):
                raise NotConstant
            if isinstance(owner, str | bytes) and name in _TEXT_METHODS:
                return getattr(owner, name)(*values, **words)
            if isinstance(owner, dict) and name == "get":
                return owner.get(*values)
            if name == "fromhex":
                return bytes.fromhex(*values)
            if name == "decode" and len(values) == 2:
                return _decoded(*values)
            raise NotConstant
        if isinstance(node.func, ast.Name) and not words:
            return self._named(node.func, values)
        raise NotConstant

    def _owner(self, node: ast.expr, bound: Mapping[str, Any]) -> Any:
        try:
            return self.value(node, bound)
        except NotConstant:
            return None

    def _named(self, func: ast.Name, values: list[Any]) -> Any:
        if func.id in _BUILTINS or func.id in _FUNCTIONS:
            return (_BUILTINS.get(func.id) or _FUNCTIONS[func.id])(*values)
        raise NotConstant

    def _applied(self, func: ast.expr, item: Any, bound: Mapping[str, Any]) -> Any:
        if isinstance(func, ast.Lambda) and len(func.args.args) == 1:
            return self.value(func.body, {**bound, func.args.args[0].arg: item})
        if isinstance(func, ast.Name):
            return self._named(func, [item])
        raise NotConstant


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left * right
    text, count = (left, right) if isinstance(right, int) else (right, left)
    if not isinstance(count, int) or len(text) * max(count, 0) > _MOST_ITEMS:
        raise NotConstant
    return text * count


def _has_width(pattern: Any) -> bool:
    """Whether a pattern pads what it formats to a length of its own choosing."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else str(pattern)
    return bool(re.search(r"\d{4}|\*|\{[^}]*\{", text))


def _inflated(data: bytes) -> bytes:
    return zlib.decompressobj().decompress(data, _MOST_ITEMS)


def _decoded(data: Any, codec: str = "utf-8") -> Any:
    return codecs.decode(data, codec) if codec.replace("_", "").replace("-", "").lower() in _CODECS else data


_CODECS = {"rot13", "hex", "base64", "utf8", "ascii", "latin1", "unicodeescape"}
_TEXT_METHODS = {
    "join", "format", "decode", "encode", "replace", "lower", "upper", "strip", "lstrip", "rstrip", "split",
    "title", "swapcase", "capitalize", "casefold", "removeprefix", "removesuffix", "hex",
}  # fmt: skip
_BUILTINS: dict[str, Callable[..., Any]] = {
    "chr": chr, "ord": ord, "str": lambda value="": value if isinstance(value, str) else str(value),
    "bytes": lambda value: bytes(value) if not isinstance(value, int) else b"", "bytearray": bytes,
    "list": list, "tuple": tuple, "int": int, "float": float, "bool": bool, "len": len,
    "reversed": lambda value: list(reversed(value)), "sorted": sorted, "frozenset": frozenset, "set": set,
    "range": lambda *edges: list(range(*edges))[:_MOST_ITEMS] if max(map(abs, edges)) <= _MOST_ITEMS else [],
    "hex": hex, "dict": dict, "zip": lambda *columns: list(zip(*columns, strict=False)),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "b64decode": base64.b64decode, "urlsafe_b64decode": base64.urlsafe_b64decode, "b32decode": base64.b32decode,
    "b16decode": base64.b16decode, "b85decode": base64.b85decode, "a85decode": base64.a85decode,
    "unhexlify": binascii.unhexlify, "a2b_base64": binascii.a2b_base64, "a2b_hex": binascii.unhexlify,
    "decompress": _inflated, "loads": json.loads, "literal_eval": ast.literal_eval,
}  # fmt: skip
