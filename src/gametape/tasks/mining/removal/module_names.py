"""What a module does with names while it is imported, and what it imports: enough to tell who would miss a function.

Everything is kept as places in the text, so that what is remembered of a large code base stays small.
"""

import ast
import collections.abc
import functools
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gametape.tasks.mining.functions import is_overload
from gametape.tasks.mining.removal.python_source import (
    FunctionNode,
    NotPythonError,
    PythonSource,
    inner_blocks,
    read_source,
)

MODULE_SCOPE = 0
"""The scope of a module; that of a class is the line it begins on."""
NO_OWNER = 0
"""The owner of what stands in no function's signature; otherwise the line of its `def`."""
ByteRange = tuple[int, int]

_WORD = re.compile(r"\w+")
_TYPE_COMMENT = re.compile(rb"#[ \t]*type:[^\r\n]*")


@dataclass(frozen=True)
class StatementSpan:
    """Where a statement stands, and in which of the file's blocks."""

    span: ByteRange
    block: int


@dataclass(frozen=True)
class DefinedName:
    name: str
    line: int
    scope: int
    overload: bool
    statement: StatementSpan


@dataclass(frozen=True)
class ImportedName:
    """One name that an import statement binds. `name` is None for a plain `import`, `*` for a star."""

    local_name: str
    module: tuple[str, ...]
    level: int
    name: str | None
    redundant: bool
    """`import x as x` says that it is meant for others."""
    scope: int | None
    """None inside a function."""
    unconditional: bool
    """At the top of the module, or for type checkers only; not a probe under `try`."""
    statement: StatementSpan
    name_ranges: tuple[ByteRange, ...]
    """Of all the names of its statement."""
    index: int


@dataclass(frozen=True)
class ExportedName:
    """One entry of `__all__`. Where `display` is None, there is no entry to cut, only a text that mentions it."""

    name: str
    statement: StatementSpan
    display: ByteRange | None = None
    is_tuple: bool = False
    entries: tuple[ByteRange, ...] = ()
    index: int = 0


@dataclass
class ModuleNames:
    definitions: dict[int, DefinedName] = field(default_factory=dict)
    bindings: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """By scope and name: the line of each binding."""
    loads: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    """Names read at import, or whenever a function builds a table of them: in which scope, in whose definition."""
    attributes: dict[str, set[tuple[str | None, int]]] = field(default_factory=dict)
    """Attributes read at import: of which name, in whose signature."""
    imports: list[ImportedName] = field(default_factory=list)
    exports: list[ExportedName] = field(default_factory=list)
    has_dunder_all: bool = False
    import_uses: dict[str, list[int]] = field(default_factory=dict)
    """Where imported names are used, anywhere in the file."""
    required_methods: set[str] = field(default_factory=set)
    """Methods that some class must have to be defined or instantiated."""
    blocks: list[int] = field(default_factory=list)
    """How many statements each block has."""


@functools.lru_cache(maxsize=8192)
def read_module_names(content: bytes) -> ModuleNames:
    """Of a file that cannot be parsed: nothing."""
    try:
        source = read_source(content)
    except NotPythonError:
        return ModuleNames()
    reader = _Reader(source)
    reader.block(source.module.body, MODULE_SCOPE, True)
    reader.uses()
    return reader.names


class _Reader:
    def __init__(self, source: PythonSource) -> None:
        self.source = source
        self.names = ModuleNames()

    def block(self, body: list[ast.stmt], scope: int | None, plain: bool) -> None:
        number = len(self.names.blocks)
        self.names.blocks.append(len(body))
        for node in body:
            self.statement(node, scope, plain, number)

    def statement(self, node: ast.stmt, scope: int | None, plain: bool, block: int) -> None:
        place = StatementSpan(self.span(node), block)
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imported(node, scope, plain, place)
        elif scope is None:
            self.inside(node)
        elif isinstance(node, FunctionNode):
            self.bind(scope, node.name, node.lineno)
            self.names.definitions[node.lineno] = DefinedName(node.name, node.lineno, scope, is_overload(node), place)
            self.evaluated([*node.decorator_list, node.args, node.returns], scope, node.lineno)
            if any(_last_name(one).startswith("abstract") for one in node.decorator_list):
                self.names.required_methods.add(node.name)
            for name in _tabled(node):
                self.names.loads.setdefault(name, set()).add((MODULE_SCOPE, node.lineno))
            self.block(node.body, None, False)
        elif isinstance(node, ast.ClassDef):
            self.bind(scope, node.name, node.lineno)
            self.evaluated([*node.decorator_list, *node.bases, *node.keywords], scope, NO_OWNER)
            self.names.required_methods |= _demands(node)
            self.block(node.body, node.lineno, False)
        else:
            self.exported(node, place)
            blocks = [*inner_blocks(node)]
            self.evaluated([*_own_parts(node)], scope, NO_OWNER)
            for handler in getattr(node, "handlers", ()):
                self.evaluated([handler.type], scope, NO_OWNER)
            for inner in blocks:
                self.block(inner, scope, plain and isinstance(node, ast.If))

    def inside(self, node: ast.stmt) -> None:
        """In a function only imports matter, however deep."""
        for inner in inner_blocks(node):
            self.block(inner, None, False)

    def evaluated(self, parts: list[Any], scope: int, owner: int) -> None:
        """Lambdas are not: they wait for a call."""
        waiting = [part for part in parts if part is not None]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.names.loads.setdefault(node.id, set()).add((scope, owner))
                else:
                    self.bind(scope, node.id, node.lineno)
            elif isinstance(node, ast.Attribute):
                self.names.attributes.setdefault(node.attr, set()).add((_root(node), owner))
            if isinstance(node, ast.Lambda):
                waiting += [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
            else:
                waiting += ast.iter_child_nodes(node)

    def imported(self, node: ast.Import | ast.ImportFrom, scope: int | None, plain: bool, place: StatementSpan) -> None:
        spans = tuple(self.span(alias) for alias in node.names)
        for index, alias in enumerate(node.names):
            if isinstance(node, ast.ImportFrom):
                module, level, name = node.module or "", node.level, alias.name
            else:
                module, level, name = alias.name, 0, None
            local = alias.asname or alias.name.partition(".")[0]
            if scope is not None and name != "*":
                self.bind(scope, local, node.lineno)
            parts = tuple(part for part in module.split(".") if part)
            redundant = alias.asname == alias.name or (name is None and "." in module and alias.asname is None)
            found = ImportedName(local, parts, level, name, redundant, scope, plain, place, spans, index)
            self.names.imports.append(found)

    def exported(self, node: ast.stmt, place: StatementSpan) -> None:
        if not _is_about_all(node):
            return
        self.names.has_dunder_all = True
        entries: set[int] = set()
        for display in ast.walk(node):
            if isinstance(display, ast.List | ast.Tuple | ast.Set):
                spans = tuple(self.span(one) for one in display.elts)
                for index, one in enumerate(display.elts):
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        entries.add(id(one))
                        is_tuple = isinstance(display, ast.Tuple)
                        self.names.exports.append(
                            ExportedName(one.value, place, self.span(display), is_tuple, spans, index)
                        )
        for text in ast.walk(node):
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and id(text) not in entries:
                self.names.exports += (ExportedName(word, place) for word in _WORD.findall(text.value))

    def uses(self) -> None:
        """Of imported names: as names, in annotations that are texts, and in type comments."""
        names, source = self.names, self.source
        local = {one.local_name for one in names.imports}
        prose = set()
        for node in ast.walk(source.module):
            if isinstance(node, ast.Name) and node.id in local:
                names.import_uses.setdefault(node.id, []).append(source.start(node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                for word in local.intersection(_WORD.findall(node.value)):
                    names.import_uses.setdefault(word, []).append(source.start(node))
            elif isinstance(node, ast.Module | ast.ClassDef | FunctionNode):
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr):
                    prose.add(id(first.value))
        for comment in _TYPE_COMMENT.finditer(source.text):
            for word in local.intersection(_WORD.findall(comment.group().decode())):
                names.import_uses.setdefault(word, []).append(comment.start())

    def bind(self, scope: int, name: str, line: int) -> None:
        self.names.bindings.setdefault((scope, name), []).append(line)

    def span(self, node: Any) -> ByteRange:
        return self.source.start(node), self.source.end(node)


def _own_parts(node: ast.stmt) -> Iterator[ast.AST]:
    """A statement without the statements in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.match_case):
            yield child.pattern
            if child.guard is not None:
                yield child.guard
        elif not isinstance(child, ast.stmt | ast.ExceptHandler):
            yield child


def _tabled(node: FunctionNode) -> Iterator[str]:
    """Names that a function puts into a display. It needs all of them however few it calls."""
    for display in (part for statement in node.body for part in ast.walk(statement)):
        entries: list[Any] = getattr(display, "elts", []) or getattr(display, "values", [])
        if isinstance(display, ast.Dict | ast.List | ast.Tuple | ast.Set):
            yield from (one.id for one in entries if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))


def _is_about_all(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(one, ast.Name) and one.id == "__all__" for one in node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.target.id == "__all__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _root(node.value) == "__all__"


def _root(node: ast.AST) -> str | None:
    """The name that a chain of attributes, calls and items begins with."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call | ast.Subscript):
        return _last_name(node.func if isinstance(node, ast.Call) else node.value)
    return getattr(node, "attr", getattr(node, "id", ""))


def _demands(node: ast.ClassDef) -> frozenset[str]:
    """What its decorators and the abstract bases of the standard library ask of a class."""
    found: set[str] = set()
    for base in map(_last_name, node.bases):
        known = getattr(collections.abc, base, None) or getattr(getattr(typing, base, None), "__origin__", None)
        found |= getattr(known, "__abstractmethods__", frozenset())
    if any(_last_name(one) == "total_ordering" for one in node.decorator_list):
        found |= {"__lt__", "__le__", "__gt__", "__ge__"}
    return frozenset(found)
