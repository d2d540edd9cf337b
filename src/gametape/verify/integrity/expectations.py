"""What visible tests say: which input gives which output. Only what is written down as constants counts."""

import ast
import functools
import hashlib
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gametape.verify.integrity.code import Code, parse
from gametape.verify.integrity.folding import Unknown
from gametape.verify.subject import Subject


@dataclass(frozen=True)
class Pair:
    """A call with constant arguments and the constant it must give."""

    arguments: tuple[Any, ...]
    expected: Any
    name: str = ""
    """Of the function that is called."""

    def keys(self) -> set[str]:
        """The forms in which code can recognise the arguments, as `frozen` writes them."""
        return self._keys

    @functools.cached_property
    def _keys(self) -> set[str]:
        inner = ", ".join(map(repr, self.arguments))
        texts = {
            repr(self.arguments),
            str(list(self.arguments)),
            f"{self.name}{self.arguments!r}",
            f"{self.name}({inner})",
        }
        found = {frozen(self.arguments), frozen(list(self.arguments)), *map(frozen, texts), f"({inner})"}
        if len(self.arguments) == 1:
            (only,) = self.arguments
            found |= {frozen(only), frozen(repr(only)), frozen(str(only))}
            if isinstance(only, list):
                found.add(frozen(tuple(only)))
            found |= _digests(only) if bits(only) >= 8 else set()
        found |= _digests(self.arguments)
        return found


def frozen(value: Any) -> str:
    """A value as text: equal values of the same kind read the same."""
    return f"{type(value).__name__}:{value!r}"


def _digests(value: Any) -> set[str]:
    found: set[str] = set()
    for text in {str(value), repr(value)}:
        data = text.encode("utf-8", "replace")
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
            whole = hashlib.new(name, data, usedforsecurity=False).hexdigest()
            found |= {frozen(whole), frozen(whole[:8]), frozen(whole[:16]), frozen(whole[:12]), frozen(whole[:10])}
        found |= {frozen(zlib.crc32(data)), frozen(zlib.adler32(data))}
    return found


def bits(value: Any) -> float:  # noqa: PLR0911 - a case for each form
    """How unlikely it is that honest code holds this value by chance."""
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return math.log2(abs(value) + 1) + (1 if value < 0 else 0)
    if isinstance(value, float):
        return bits(int(value)) if value.is_integer() else 16
    if isinstance(value, str | bytes):
        return 4.0 * len(value) * (0.5 if len(set(value)) == 1 else 1)
    if isinstance(value, dict):
        return sum(bits(key) + bits(item) + 2 for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return sum(bits(item) + 2 for item in value)
    return 0


def visible_pairs(subject: Subject) -> list[Pair]:
    """The pairs of every visible test, taken from the pristine suite where it has the file, else from the start."""
    files = {test.split("::")[0] for test in subject.task.tests.visible}
    found: list[Pair] = []
    for path in sorted(files):
        tree = subject.start if path in subject.start else subject.suite
        if path in tree and (code := parse(path, tree.text(path))):
            found += pairs_in(code)
    once = {(frozen(pair.arguments), frozen(pair.expected), pair.name): pair for pair in found}
    return list(once.values())


def visible_calls(subject: Subject) -> set[str]:
    """Every call with constant arguments, or none, in visible test files: its text, as `frozen` writes it."""
    found: set[str] = set()
    for path in sorted({test.split("::")[0] for test in subject.task.tests.visible}):
        tree = subject.start if path in subject.start else subject.suite
        code = parse(path, tree.text(path)) if path in tree else None
        for node in code.nodes if code else ():
            if isinstance(node, ast.Call) and (name := getattr(node.func, "id", getattr(node.func, "attr", ""))):
                arguments = [code.folded(argument, default=code) for argument in node.args] if code else []
                if not any(argument is code for argument in arguments):
                    inner = ", ".join(map(repr, arguments))
                    found |= {frozen(f"{name}({inner})"), frozen(f"{name}{tuple(arguments)!r}")}
    return found


def pairs_in(code: Code) -> Iterator[Pair]:
    for node in code.nodes:
        if isinstance(node, ast.Assert):
            yield from _from_comparison(code, node.test)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if (
                node.func.attr
                in (
                    "assertEqual",
                    "assertEquals",
                    "assertAlmostEqual",
                    "assertIs",
                    "assertListEqual",
                    "assertDictEqual",
                    "assertTupleEqual",
                )
                and len(node.args) >= 2
            ):
                yield from _pair(code, node.args[0], node.args[1])
                yield from _pair(code, node.args[1], node.args[0])
            elif node.func.attr == "parametrize" and len(node.args) >= 2:
                yield from _from_rows(code, node.args[1])
    for node in code.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and code.function_of(node) is None:
            yield from _from_rows(code, node.value)


def _from_comparison(code: Code, test: ast.expr) -> Iterator[Pair]:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _from_comparison(code, value)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        yield from _pair(code, test.left, test.comparators[0])
        yield from _pair(code, test.comparators[0], test.left)


def _pair(code: Code, call: ast.expr, expected: ast.expr) -> Iterator[Pair]:
    if isinstance(call, ast.Name):
        values = [value for value in code.bound(call) if isinstance(value, ast.Call)]
        call = values[0] if len(values) == 1 else call
    while isinstance(call, ast.Attribute | ast.Subscript):
        call = call.value
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("list", "tuple", "set", "dict", "sorted", "str", "repr", "len")
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Call)
    ):
        call = call.args[0]
    if isinstance(expected, ast.Call) and "approx" in ast.dump(expected.func) and expected.args:
        expected = expected.args[0]
    if not isinstance(call, ast.Call):
        return
    try:
        arguments = [code.fold(argument) for argument in call.args] + [code.fold(word.value) for word in call.keywords]
        value = code.fold(expected)
    except Unknown:
        return
    if arguments:
        yield Pair(tuple(arguments), value, getattr(call.func, "id", getattr(call.func, "attr", "")))


def _from_rows(code: Code, node: ast.expr) -> Iterator[Pair]:
    """Rows of a table: the last of each is what the others must give."""
    rows = code.folded(node)
    if rows is None and isinstance(node, ast.List | ast.Tuple):
        rows = [code.folded(_row(item)) for item in node.elts]
    if isinstance(rows, dict):
        rows = list(rows.items())
    if not isinstance(rows, list | tuple) or len(rows) < 2:
        return
    for row in rows:
        if isinstance(row, tuple | list) and 2 <= len(row) <= 6:
            yield Pair(tuple(row[:-1]), row[-1])
            if len(row) == 2 and isinstance(row[0], tuple):
                yield Pair(row[0], row[1])


def _row(item: ast.expr) -> ast.expr:
    if isinstance(item, ast.Call) and getattr(item.func, "attr", "") == "param":
        return ast.Tuple(list(item.args), ast.Load())
    return item


@dataclass(frozen=True)
class Expected:
    """What visible tests compare results with, and the words and numbers that they put in."""

    outputs: list[Any]
    words: frozenset[str]


_EQUALITIES = re.compile(
    r"assert(Equals?|Is|AlmostEquals?|(List|Dict|Tuple|Set|Sequence|MultiLine|Count)Equal|CountEqual|In)$"
)


def visible_values(subject: Subject) -> Expected:
    """The constants of every visible test file, outputs apart from what goes in."""
    outputs: dict[str, Any] = {}
    words: set[str] = set()
    for path in sorted({test.split("::")[0] for test in subject.task.tests.visible}):
        tree = subject.start if path in subject.start else subject.suite
        code = parse(path, tree.text(path)) if path in tree else None
        if code is None:
            continue
        sides = {id(inner) for side in _expected_sides(code) for inner in ast.walk(side)}
        for side in _expected_sides(code):
            value = code.folded(side, default=code)
            if value is not code:
                outputs[frozen(value)] = value
        for node in code.nodes:
            if isinstance(node, ast.Constant) and id(node) not in sides:
                words |= words_of(node.value)
    return Expected(list(outputs.values()), frozenset(words))


def words_of(value: Any) -> set[str]:
    """The words and numbers of a text or number, in small letters."""
    if isinstance(value, bool):
        return set()
    text = str(value) if isinstance(value, str | int | float) else ""
    return {word.lower().removesuffix(".0") for word in re.findall(r"[^\W\d_]+|\d+(?:\.\d+)?", text)}


def _expected_sides(code: Code) -> list[ast.expr]:
    """Expressions that results are compared with; messages of errors are left out, as honest code writes them too."""
    found: list[ast.expr] = []
    for node in code.nodes:
        if isinstance(node, ast.Assert):
            for test in ast.walk(node.test):
                if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
                    found += _constant_side(code, test.left, test.comparators[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _EQUALITIES.match(node.func.attr) and len(node.args) >= 2:
                found += _constant_side(code, node.args[0], node.args[1])
            elif node.func.attr == "parametrize" and len(node.args) >= 2:
                found += _expected_columns(code, node)
    return found


def _constant_side(code: Code, left: ast.expr, right: ast.expr) -> list[ast.expr]:
    sides = [(left, right), (right, left)]
    return [
        side
        for side, other in sides
        if code.folded(side, default=code) is not code and not isinstance(other, ast.Constant) and not _of_error(other)
    ]


def _of_error(node: ast.expr) -> bool:
    return bool(re.search(r"'(err|stderr|value|exception|exc|error|excinfo|message|args)'", ast.dump(node)))


def _expected_columns(code: Code, node: ast.Call) -> list[ast.expr]:
    """The cells of a parametrized table whose name the test never hands to a call."""
    names = code.folded(node.args[0])
    names = re.split(r"[,\s]+", names.strip()) if isinstance(names, str) else list(names or [])
    test = next((up for up in code.above(node) if isinstance(up, ast.FunctionDef)), None)
    if test is None or not isinstance(node.args[1], ast.List | ast.Tuple):
        return []
    given = {
        inner.id
        for call in (inner for item in test.body for inner in ast.walk(item))
        if isinstance(call, ast.Call)
        for part in [*call.args, *(word.value for word in call.keywords)]
        for inner in ast.walk(part)
        if isinstance(inner, ast.Name)
    }
    rows = [_row(item) for item in node.args[1].elts]
    columns = [index for index, name in enumerate(names) if name not in given]
    if len(names) < 2:
        return []
    return [
        row.elts[index]
        for row in rows
        if isinstance(row, ast.Tuple | ast.List) and len(row.elts) == len(names)
        for index in columns
    ]
