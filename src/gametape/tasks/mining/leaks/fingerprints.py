"""Recognise the body of a function again: as a whole whatever its variables are called, or some statements of it.

Two things are compared. The *fingerprint* of a whole body follows its scopes: renaming local variables does not change
it, everything else does. The *statements* of a body are for partial copies, in whatever else was copied with them or
left out: each has a key of its own, compound statements give one for their head and one for each statement inside.
A line cut out of its function does not tell which names were local, so there all names are equal but those of builtins,
of what is called, and those with a capital.
"""

import ast
import builtins
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

MIN_FINGERPRINT_NODES = 20
"""Smaller bodies identify nothing. Over 133,000 functions of the standard library and about a hundred packages, the
same body stands under another name in another package for 73 % of those below 4 nodes, 16 % up to 6, 2 % up to 8, and
at most 0.5 % from 20 on, where nearly all that were looked at are copies. Within one package, where siblings resemble
each other, it falls from 77 % below 4 nodes to 4 % at 20."""
_DEEPEST = 100
"""Nesting beyond this is not compared: sums of a thousand terms are as deep as they are long."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_BUILTINS = frozenset(dir(builtins))
_IGNORED = frozenset(
    {"annotation", "returns", "type_comment", "type_params", "ctx", "kind", "decorator_list", "simple"}
)


@functools.lru_cache(maxsize=256)
def functions_by_line(source: str) -> Mapping[int, FunctionNode]:
    """Every function of a text, also inside others, by the line of its `def`; none if it is not Python."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.lineno: node for node in found}


class NormalizedStatement(NamedTuple):
    """One statement, or the head of a compound one. Equal keys are equal statements up to names."""

    key: int
    size: int
    """How many nodes its syntax tree has."""
    line: int


def fingerprint(node: FunctionNode) -> str | None:
    """Names a body up to its docstring, annotations and the names of its local variables. None if it is too small for
    an equal one to be a copy."""
    local = local_names(node)
    order: dict[str, str] = {}
    written = _Writer(lambda name, _: order.setdefault(name, f"${len(order)}") if name in local else name)
    written.block(node.body)
    if written.nodes < MIN_FINGERPRINT_NODES:
        return None
    return hashlib.blake2b("\0".join(written.out).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def nodes_in(node: FunctionNode) -> int:
    """The size of a body as `fingerprint` counts it."""
    written = _Writer(lambda name, _: name)
    written.block(node.body)
    return written.nodes


def normalized_statements(body: Iterable[ast.AST]) -> Iterator[NormalizedStatement]:
    """The statements of a body in the order of the text, heads before what they hold. Those that say nothing, such as
    docstrings and `pass`, are left out."""
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
    """What a compound statement says before its blocks; None for a simple statement."""
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
    """Writes a syntax tree as words, without positions and annotations."""

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
                for one in value:
                    self._field(node, name, one)
                self.out.append(";")
        elif isinstance(value, ast.AST):
            self.node(value, called=name == "func")
        elif isinstance(value, str) and _is_a_variable(node, name):
            self.out.append(self._renamed(value, False))
        else:
            self.out.append(repr(value) if isinstance(value, str) else "" if value is None else str(value))


def _is_a_variable(node: ast.AST, field: str) -> bool:
    """Whether a text in the tree names a variable, rather than an attribute or a parameter of somebody else."""
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
    """Every name bound anywhere in a function, also in functions inside it, and its parameters."""
    found: set[str] = set()
    shared: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.add(node.id)
            case ast.arg():
                found.add(node.arg)
            case ast.Global():
                shared.update(node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node is not function:
                    found.add(node.name)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                found.add(node.name or "")
            case ast.MatchMapping():
                found.add(node.rest or "")
            case ast.alias():
                found.add(node.asname or "")
            case _:
                pass
    return found - shared
