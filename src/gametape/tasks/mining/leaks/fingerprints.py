"""Recognise copies of a function body: whole copies under any variable names, or some of its statements.

The *fingerprint* of a whole body changes with everything but the names of local variables. *Statements* find partial
copies: each has its own key; a compound statement has one for its head and one for each statement inside. A line
outside its function does not tell which names are local, so in keys all names are equal except builtins, called names
and names that begin with a capital.
"""

import ast
import builtins
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from gametape.syntax.source import parse_or_none
from gametape.tasks.mining.removal.python_source import FunctionNode

MIN_FINGERPRINT_NODES = 20
"""Smaller bodies identify nothing. Among 133,000 functions of the standard library and about a hundred packages, the
same body occurs under another name in another package for 73 % of those below 4 nodes, 16 % up to 6, 2 % up to 8, and
at most 0.5 % from 20 on, where nearly all are copies. Within one package it falls from 77 % below 4 nodes to 4 % at
20."""
_DEEPEST = 100
"""Nesting beyond this is not compared: sums of a thousand terms are as deep as they are long."""

_BUILTINS = frozenset(dir(builtins))
_IGNORED = frozenset(
    {"annotation", "returns", "type_comment", "type_params", "ctx", "kind", "decorator_list", "simple"}
)


@functools.lru_cache(maxsize=256)
def functions_by_line(source: str) -> Mapping[int, FunctionNode]:
    """Every function of a source text, nested ones included, by the line of its `def`; none if it is not Python."""
    module = parse_or_none(source)
    if module is None:
        return {}
    return {node.lineno: node for node in ast.walk(module) if isinstance(node, FunctionNode)}


class NormalizedStatement(NamedTuple):
    """One statement, or the head of a compound one. Equal keys are equal statements up to names."""

    key: int
    size: int
    """How many nodes its syntax tree has."""
    line: int


def fingerprint(node: FunctionNode) -> str | None:
    """A digest of a body without its docstring, annotations and names of local variables. None if the body is too
    small for an equal one to be a copy."""
    local = local_names(node)
    order: dict[str, str] = {}
    written = _Writer(lambda name, _: order.setdefault(name, f"${len(order)}") if name in local else name)
    written.block(node.body)
    if written.nodes < MIN_FINGERPRINT_NODES:
        return None
    return hashlib.blake2b("\0".join(written.out).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def normalized_statements(body: Iterable[ast.AST]) -> Iterator[NormalizedStatement]:
    """The statements of a body in text order, the head of a compound statement before its body. Statements without
    effect, such as docstrings and `pass`, are left out."""
    waiting = [iter(body)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
        elif not _says_nothing(node):
            parts = _head(node)
            if parts is None or parts:
                yield _statement(node, parts or [node])
            if parts is not None:
                waiting.append(itertools.chain.from_iterable(_blocks(node)))


def _statement(node: ast.AST, parts: list[ast.AST]) -> NormalizedStatement:
    order: dict[str, str] = {}

    def renamed(name: str, called: bool) -> str:
        return name if called or name in _BUILTINS or name[0].isupper() else order.setdefault(name, f"${len(order)}")

    written = _Writer(renamed)
    written.out.append("" if parts == [node] else type(node).__name__)
    for part in parts:
        written.node(part)
    return NormalizedStatement(
        hash("\0".join(written.out)), written.nodes + (parts != [node]), getattr(node, "lineno", 0)
    )


_HEADS: dict[type[ast.AST], tuple[str, ...]] = {
    **{ast.FunctionDef: ("args",), ast.AsyncFunctionDef: ("args",), ast.ClassDef: ("bases", "keywords")},
    **{ast.If: ("test",), ast.While: ("test",), ast.For: ("target", "iter"), ast.AsyncFor: ("target", "iter")},
    **{ast.With: ("items",), ast.AsyncWith: ("items",), ast.Try: (), ast.TryStar: (), ast.ExceptHandler: ("type",)},
    **{ast.Match: ("subject",), ast.match_case: ("pattern", "guard")},
}


def _head(node: ast.AST) -> list[ast.AST] | None:
    """The parts of a compound statement before its blocks; None for a simple statement."""
    names = _HEADS.get(type(node))
    if names is None:
        return None
    values = (getattr(node, name) for name in names)
    return [part for value in values if value for part in (value if isinstance(value, list) else [value])]


def _blocks(node: ast.AST) -> Iterator[Iterable[ast.AST]]:
    for name in ("body", "cases", "handlers", "orelse", "finalbody"):
        yield getattr(node, name, ())


def _says_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Pass | ast.Global | ast.Nonlocal)


class _Writer:
    """Serialises a syntax tree as words, without positions and annotations."""

    def __init__(self, renamed: Callable[[str, bool], str]) -> None:
        self.out: list[str] = []
        self.nodes = 0
        self._depth = 0
        self._renamed = renamed

    def block(self, body: Iterable[ast.AST]) -> None:
        self.out.append("{")
        for node in body:
            if not _says_nothing(node):
                self.node(node)
        self.out.append("}")

    def node(self, node: ast.AST, called: bool = False) -> None:
        self.nodes += 1
        if self._depth > _DEEPEST:
            self.out.append("...")
            return
        self._depth += 1
        self._inner(node, called)
        self._depth -= 1

    def _inner(self, node: ast.AST, called: bool) -> None:
        if isinstance(node, ast.Name):
            self.out.append(self._renamed(node.id, called))
            return
        if isinstance(node, ast.Constant):
            self.out.append(repr(node.value))
            return
        if isinstance(node, ast.AnnAssign) and node.value:
            node = ast.Assign(targets=[node.target], value=node.value)
        self.out.append(type(node).__name__)
        for name in node._fields:
            if name not in _IGNORED:
                self._field(node, name, getattr(node, name, None))
        self.out.append(")")

    def _field(self, node: ast.AST, name: str, value: object) -> None:
        if isinstance(value, list):
            if value and isinstance(value[0], ast.stmt):
                self.block(value)
            else:
                for item in value:
                    self._field(node, name, item)
                self.out.append(";")
        elif isinstance(value, ast.AST):
            self.node(value, called=name == "func")
        elif isinstance(value, str) and _is_a_variable(node, name):
            self.out.append(self._renamed(value, False))
        else:
            self.out.append(repr(value) if isinstance(value, str) else "" if value is None else str(value))


def _is_a_variable(node: ast.AST, field: str) -> bool:
    """Whether a string field of a node is the name of a variable, not of an attribute or a foreign parameter."""
    match node:
        case ast.arg():
            return field == "arg"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler():
            return True
        case ast.MatchAs() | ast.MatchStar():
            return True
        case ast.MatchMapping():
            return field == "rest"
        case ast.alias():
            return field == "asname"
        case _:
            return False


def local_names(function: FunctionNode) -> set[str]:
    """Every name bound in a function, nested functions included, and its parameters."""
    names: set[str] = set()
    shared: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(node.id)
            case ast.arg():
                names.add(node.arg)
            case ast.Global():
                shared.update(node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node is not function:
                    names.add(node.name)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                names.add(node.name or "")
            case ast.MatchMapping():
                names.add(node.rest or "")
            case ast.alias():
                names.add(node.asname or "")
            case _:
                pass
    return names - shared
