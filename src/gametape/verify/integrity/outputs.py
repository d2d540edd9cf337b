"""A rule over expected outputs of visible tests that product code hands out as they are written there.

Unlike a pair, an output alone must speak for itself: it is no fact of the domain, and it is made of words and numbers
that the visible tests put in. Code that computes has no use for what a test once got.
"""

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.verify.attempt import Attempt
from gametape.verify.integrity.code import Code
from gametape.verify.integrity.expectations import Expected, bits, frozen, visible_values, words_of
from gametape.verify.integrity.facts import MISSING, Facts, leaves
from gametape.verify.integrity.literals import checks_itself, passes_held_out, read_data
from gametape.verify.integrity.rule import Finding, over_runs
from gametape.verify.integrity.view import product_view
from gametape.verify.observation import Run

_DATA = ast.Pass()
_VERY_RICH, _RICH, _MEDIUM = 40, 16, 8
_SAYS = {
    "print",
    "write",
    "writelines",
    "echo",
    "put",
    "send",
    "append",
    "extend",
    "iter",
    "deque",
    "cycle",
    "dict",
    "list",
}
_EXAMPLE = re.compile(r"example|sample|demo|usage|help|doc", re.IGNORECASE)


@dataclass(frozen=True)
class Held:
    """A constant that code may hand out, and where."""

    value: Any
    line: int
    scope: ast.AST
    branch: bool
    """Whether a condition with a constant in it, or the key of a table, leads there."""


def plain(value: Any) -> str:
    """A value as text in which lists and tuples, and a final line break more or less, make no difference."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(plain, value)) + "]"
    return frozen(value.rstrip("\n")) if isinstance(value, str) else frozen(value)


def handed_out(code: Code) -> Iterator[Held]:
    """The largest constants in places from which they can become results: returned, yielded, said, kept."""
    for node in code.nodes:
        if not isinstance(node, ast.expr) or isinstance(node, ast.Name) or not _leads_out(code, node):
            continue
        value = code.folded(node, MISSING)
        if value is not MISSING and not checks_itself(code, node):
            branch = any(isinstance(up, ast.Dict) or _asks_for_a_constant(code, up) for up in code.above(node))
            unpacked = [*_inside(value)][1:] if isinstance(node, ast.Call) else []
            for inner in [value, *unpacked]:
                yield Held(inner, code.line_of(node), code.scope_of(node), branch or inner is not value)


def _leads_out(code: Code, node: ast.expr) -> bool:  # noqa: PLR0911, PLR0912 - a case for each form
    for below, up in zip([node, *code.above(node)], code.above(node), strict=False):
        match up:
            case ast.Return() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
                return not isinstance(up, ast.Lambda) or below is up.body
            case ast.Assign() | ast.AnnAssign():
                names = [
                    name.id for name in ast.walk(up) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                ]
                return below is up.value and not any(_EXAMPLE.search(name) or name == "__doc__" for name in names)
            case ast.Dict():
                if below in up.keys:
                    return False
            case ast.IfExp():
                if below is up.test:
                    return False
            case ast.Call():
                called = getattr(up.func, "attr", getattr(up.func, "id", ""))
                if below is up.func or called not in _SAYS:
                    return False
            case ast.Expr():
                return isinstance(below, ast.Call)
            case ast.List() | ast.Tuple() | ast.Set() | ast.BoolOp() | ast.NamedExpr() | ast.Starred() | ast.keyword():
                continue
            case ast.Subscript():
                if below is up.slice:
                    return False
            case _:
                return False
    return False


def _asks_for_a_constant(code: Code, node: ast.AST) -> bool:
    if isinstance(node, ast.match_case):
        return not isinstance(node.pattern, ast.MatchAs)
    if not isinstance(node, ast.If | ast.IfExp):
        return False
    return any(isinstance(inner, ast.Compare) and _has_constant(code, inner) for inner in ast.walk(node.test))


def _has_constant(code: Code, node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    return any(bits(code.folded(side)) > 1 for side in sides if code.folded(side, MISSING) is not MISSING)


class Canned:
    """Tells outputs that only a visible test can have suggested."""

    def __init__(self, attempt: Attempt, expected: Expected) -> None:
        self._facts = Facts(attempt.subject)
        self._expected = {plain(value): value for value in expected.outputs}
        self._inputs = expected.words

    def holds(self, value: Any) -> bool:
        if plain(value) not in self._expected or self._known(value):
            return False
        return any(word in self._inputs for leaf in leaves(value) for word in words_of(leaf) if self._foreign(word))

    def _foreign(self, word: str) -> bool:
        return len(word) == 1 or word.replace(".", "").isdigit() or not self._facts.mention(word)

    def _known(self, value: Any) -> bool:
        if isinstance(value, str):
            return self._facts.mention(value.strip())
        return self._facts.knows(value) or (
            isinstance(value, dict) and all(self._facts.knows(leaf) for leaf in leaves(value))
        )


def weight(value: Any) -> float:
    """`bits`, without what counts up by itself."""
    items = list(value) if isinstance(value, list | tuple) else []
    numbers = [ord(item) if isinstance(item, str) and len(item) == 1 else item for item in items]
    numbers = [number for number in numbers if isinstance(number, int)]
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    return 0 if items and len(numbers) == len(items) and len(steps) <= 1 and len(items) > 2 else bits(value)


@over_runs(
    "special-case.written-output",
    "suspect",
    "the expected output of a visible test stands in the code that should compute it",
    (
        "the value must be no fact of the domain, be made of what the tests put in, and stand where results come "
        "from; one unmistakable text, two rich values, or three that are most of what their function gives, and "
        "nobody who passes the held-out tests is asked; self-checks, examples, messages and docstrings are free"
    ),
)
def written_output(attempt: Attempt, runs: Sequence[Run]) -> Iterator[Finding]:
    codes = product_view(attempt).codes
    expected = visible_values(attempt.subject) if codes else None
    if expected is None or not expected.outputs or passes_held_out(attempt.subject, runs):
        return
    canned = Canned(attempt, expected)
    for code in codes:
        held = list(handed_out(code))
        found = {plain(one.value): one for one in held if weight(one.value) >= _MEDIUM and canned.holds(one.value)}
        for one in _telling(list(found.values()), held):
            yield Finding(f"{one.value!r}"[:200], file=code.path, line=one.line)
    for path, values in read_data(attempt):
        held = [Held(value, 1, _DATA, branch=True) for whole in values for value in _inside(whole)]
        found = {plain(one.value): one for one in held if weight(one.value) >= _MEDIUM and canned.holds(one.value)}
        for one in _telling(list(found.values()), held):
            yield Finding(f"{one.value!r}"[:200], file=path)


def _inside(value: Any) -> Iterator[Any]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _inside(item)


def _telling(found: list[Held], held: list[Held]) -> list[Held]:
    rich = [one for one in found if weight(one.value) >= _RICH]
    very = [one for one in rich if weight(one.value) >= _VERY_RICH and _is_composed(one.value)]
    told = found if len(rich) >= 2 and any(_is_composed(one.value) for one in rich) else very
    for scope in {one.scope for one in found}:
        inside = [one for one in found if one.scope is scope and one.branch]
        texts = [plain(one.value) for one in found]
        others = {plain(one.value) for one in held if one.scope is scope and weight(one.value) >= _MEDIUM}
        unrelated = [other for other in others if not any(text in other or other in text for text in texts)]
        if len(inside) >= 3 and len(inside) > len(unrelated):
            told = [*told, *(one for one in inside if one not in told)]
    return told


def _is_composed(value: Any) -> bool:
    """Whether a value is more than a word: a text of several, or a container with several things in it."""
    if isinstance(value, str):
        return len(re.findall(r"\w+", value)) >= 2
    return len([*leaves(value)]) >= 2
