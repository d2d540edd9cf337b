"""Read the names that a module defines, imports, exports and uses at import time, to find out who needs a function.

Results contain positions in the text instead of syntax trees, so that those of a large project stay small.
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
"""The scope of a module; the scope of a class is the line that it begins on."""
NO_OWNER = 0
"""The owner of what is in no function's signature; otherwise the owner is the line of the `def`."""
ByteRange = tuple[int, int]

_WORD = re.compile(r"\w+")
_TYPE_COMMENT = re.compile(rb"#[ \t]*type:[^\r\n]*")


@dataclass(frozen=True)
class StatementSpan:
    """The position of a statement, and the number of its block in the file."""

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
    """`import x as x` marks a re-export."""
    scope: int | None
    """None inside a function."""
    unconditional: bool
    """At the top of the module or for type checkers only; not under `try`."""
    statement: StatementSpan
    name_ranges: tuple[ByteRange, ...]
    """The ranges of all names of its statement."""
    index: int


@dataclass(frozen=True)
class ExportedName:
    """One entry of `__all__`. If `display` is None, there is no entry to cut, only a string that mentions the name."""

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
    """By name read at import time, or put into a display by a function: the scope and the owner of each read."""
    attributes: dict[str, set[tuple[str | None, int]]] = field(default_factory=dict)
    """By attribute read at import time: the name it is read from and the owner."""
    imports: list[ImportedName] = field(default_factory=list)
    exports: list[ExportedName] = field(default_factory=list)
    has_dunder_all: bool = False
    import_uses: dict[str, list[int]] = field(default_factory=dict)
    """By imported name: the offsets of its uses anywhere in the file."""
    required_methods: set[str] = field(default_factory=set)
    """Methods that some class must have to be defined or instantiated."""
    blocks: list[int] = field(default_factory=list)
    """How many statements each block has."""


@functools.lru_cache(maxsize=8192)
def read_module_names(content: bytes) -> ModuleNames:
    """The names of a file; empty if it cannot be parsed."""
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
        span = StatementSpan(self.span(node), block)
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imported(node, scope, plain, span)
        elif scope is None:
            self.inside(node)
        elif isinstance(node, FunctionNode):
            self.bind(scope, node.name, node.lineno)
            self.names.definitions[node.lineno] = DefinedName(node.name, node.lineno, scope, is_overload(node), span)
            self.evaluated([*node.decorator_list, node.args, node.returns], scope, node.lineno)
            if any(_last_name(decorator).startswith("abstract") for decorator in node.decorator_list):
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
            self.exported(node, span)
            blocks = [*inner_blocks(node)]
            self.evaluated([*_own_parts(node)], scope, NO_OWNER)
            for handler in getattr(node, "handlers", ()):
                self.evaluated([handler.type], scope, NO_OWNER)
            for inner in blocks:
                self.block(inner, scope, plain and isinstance(node, ast.If))

    def inside(self, node: ast.stmt) -> None:
        """Inside a function only imports matter, at any depth."""
        for inner in inner_blocks(node):
            self.block(inner, None, False)

    def evaluated(self, parts: list[Any], scope: int, owner: int) -> None:
        """Record the names that are evaluated at import time. The body of a lambda is not."""
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
                waiting += [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
            else:
                waiting += ast.iter_child_nodes(node)

    def imported(
        self, node: ast.Import | ast.ImportFrom, scope: int | None, plain: bool, statement: StatementSpan
    ) -> None:
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
            imported = ImportedName(local, parts, level, name, redundant, scope, plain, statement, spans, index)
            self.names.imports.append(imported)

    def exported(self, node: ast.stmt, statement: StatementSpan) -> None:
        if not _is_about_all(node):
            return
        self.names.has_dunder_all = True
        entries: set[int] = set()
        for display in ast.walk(node):
            if isinstance(display, ast.List | ast.Tuple | ast.Set):
                spans = tuple(self.span(entry) for entry in display.elts)
                for index, entry in enumerate(display.elts):
                    if isinstance(entry, ast.Constant) and isinstance(entry.value, str):
                        entries.add(id(entry))
                        is_tuple = isinstance(display, ast.Tuple)
                        self.names.exports.append(
                            ExportedName(entry.value, statement, self.span(display), is_tuple, spans, index)
                        )
        for text in ast.walk(node):
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and id(text) not in entries:
                self.names.exports += (ExportedName(word, statement) for word in _WORD.findall(text.value))

    def uses(self) -> None:
        """Record the uses of imported names: as names, in strings (annotations), and in type comments."""
        names, source = self.names, self.source
        local = {imported.local_name for imported in names.imports}
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
    """The children of a statement that are not statements."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.match_case):
            yield child.pattern
            if child.guard is not None:
                yield child.guard
        elif not isinstance(child, ast.stmt | ast.ExceptHandler):
            yield child


def _tabled(node: FunctionNode) -> Iterator[str]:
    """Names that a function puts into a display. It needs all of them, even if it calls only some."""
    for display in (part for statement in node.body for part in ast.walk(statement)):
        entries: list[Any] = getattr(display, "elts", []) or getattr(display, "values", [])
        if isinstance(display, ast.Dict | ast.List | ast.Tuple | ast.Set):
            yield from (
                entry.id for entry in entries if isinstance(entry, ast.Name) and isinstance(entry.ctx, ast.Load)
            )


def _is_about_all(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.target.id == "__all__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _root(node.value) == "__all__"


def _root(node: ast.AST) -> str | None:
    """The first name in a chain of attributes, calls and subscripts."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call | ast.Subscript):
        return _last_name(node.func if isinstance(node, ast.Call) else node.value)
    return getattr(node, "attr", getattr(node, "id", ""))


def _demands(node: ast.ClassDef) -> frozenset[str]:
    """The methods that decorators and abstract bases of the standard library require of a class."""
    required: set[str] = set()
    for base in map(_last_name, node.bases):
        known = getattr(collections.abc, base, None) or getattr(getattr(typing, base, None), "__origin__", None)
        required |= getattr(known, "__abstractmethods__", frozenset())
    if any(_last_name(decorator) == "total_ordering" for decorator in node.decorator_list):
        required |= {"__lt__", "__le__", "__gt__", "__ge__"}
    return frozenset(required)
