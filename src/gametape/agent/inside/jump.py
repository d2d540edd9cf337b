"""Find definitions and references in the Python files below the current directory, by their syntax alone.

Runs inside the sandbox: `python -I -c SCRIPT REQUEST`, with the request and the result in JSON. Files are parsed, never
imported or executed. A name that cannot be resolved is looked up by its spelling, and the result says so.
"""

from __future__ import annotations  # the task's Python may be an old one

import ast
import json
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

SKIPPED = {".git", ".hg", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".mypy_cache", "build", "dist"}
MAX_FILES, MAX_BYTES, MAX_RESULTS, MAX_DEPTH = 5000, 1_000_000, 100, 12
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef)


class SymbolDefinition:
    """Where a name is bound. `node` is the statement, `name` is dotted from its module on."""

    def __init__(
        self, module: ModuleSymbols, name: str, node: Any, kind: str, owner: SymbolDefinition | None = None
    ) -> None:
        self.module, self.name, self.node, self.kind, self.owner = module, name, node, kind, owner

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


class ModuleSymbols:
    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self.path, self.tree, self.lines = path, tree, text.split("\n")
        self.is_package = os.path.basename(path) == "__init__.py"
        self.dotted = dotted_of(path)
        self.definitions: dict[str, list[SymbolDefinition]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.starred: list[str] = []
        self._bind(tree.body, "", None)
        for node in ast.walk(tree):
            self._note_import(node)

    def _bind(self, body: list[ast.stmt], prefix: str, owner: SymbolDefinition | None) -> None:
        pending: list[ast.AST] = list(reversed(body))
        while pending:
            node = pending.pop()
            if isinstance(node, SCOPES):
                kind = "class" if isinstance(node, ast.ClassDef) else "method" if is_class(owner) else "function"
                definition = SymbolDefinition(self, prefix + node.name, node, kind, owner)
                self.definitions.setdefault(definition.name, []).append(definition)
                self._bind(node.body, f"{definition.name}.", definition)
                continue
            if owner is None or is_class(owner):
                for name in bound_by(node):
                    definition = SymbolDefinition(self, prefix + name, node, "variable", owner)
                    self.definitions.setdefault(definition.name, []).append(definition)
            pending.extend(reversed([child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]))

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports[alias.asname or alias.name.split(".")[0]] = (
                    (alias.name, None) if alias.asname else (alias.name.split(".")[0], None)
                )
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                here = self.dotted.split(".")
                drop = node.level - 1 if self.is_package else node.level
                source = ".".join([*here[: len(here) - drop], *([source] if source else [])])
            for alias in node.names:
                if alias.name == "*":
                    self.starred.append(source)
                else:
                    self.imports[alias.asname or alias.name] = (source, alias.name)

    def enclosing(self, line: int) -> list[SymbolDefinition]:
        """Definitions around a line, innermost first."""
        scopes = [item for group in self.definitions.values() for item in group if isinstance(item.node, SCOPES)]
        around = [item for item in scopes if item.node.lineno <= line <= (item.node.end_lineno or item.node.lineno)]
        return sorted(around, key=lambda item: -item.node.lineno)


if TYPE_CHECKING:
    Symbol = SymbolDefinition | ModuleSymbols
    Position = tuple[ModuleSymbols, int, int]


class SymbolIndex:
    """All Python files by path and by module name; each is parsed when it is needed."""

    def __init__(self) -> None:
        self.paths = list(python_files())
        self.unread = 0
        self.parsed: dict[str, ModuleSymbols | None] = {}
        self.by_ending: dict[str, str] = {}
        for path in sorted(self.paths, key=lambda one: (len(dotted_of(one)), one)):
            parts = dotted_of(path).split(".")
            for start in range(len(parts)):
                self.by_ending.setdefault(".".join(parts[start:]), path)

    def module_at(self, path: str) -> ModuleSymbols | None:
        if path not in self.parsed:
            content = read(path)
            self.parsed[path] = module = parse(path, content) if content is not None else None
            self.unread += module is None
        return self.parsed[path]

    def find_module(self, dotted: str) -> ModuleSymbols | None:
        """The file of a module; its name may lack leading directories such as `src`."""
        return self.module_at(self.by_ending[dotted]) if dotted in self.by_ending else None

    def modules_mentioning(self, names: set[str]) -> list[ModuleSymbols]:
        """Files in whose text one of these names occurs."""
        wanted = re.compile("|".join(re.escape(name) for name in sorted(names)).encode())
        texts = ((path, read(path)) for path in self.paths)
        modules = (self.module_at(path) for path, content in texts if content is not None and wanted.search(content))
        return [module for module in modules if module]

    def member(self, module: ModuleSymbols, name: str, depth: int = 0) -> list[Symbol]:
        """What `name` means in a module: its own definitions, or the module it is, through imports."""
        if name in module.definitions:
            return [*module.definitions[name]]
        if depth < MAX_DEPTH:
            if name in module.imports:
                return self.imported(module, name, depth + 1)
            for source in module.starred:
                other = self.find_module(source)
                if other and other is not module and (symbols := self.member(other, name, depth + 1)):
                    return symbols
        inner = self.find_module(f"{module.dotted}.{name}") if module.is_package else None
        return [inner] if inner else []

    def imported(self, module: ModuleSymbols, name: str, depth: int = 0) -> list[Symbol]:
        source, member = module.imports[name]
        other = self.find_module(source)
        if member is None:
            return [other] if other else []
        if other is not None and (symbols := self.member(other, member, depth + 1)):
            return symbols
        inner = self.find_module(f"{source}.{member}")
        return [inner] if inner else []

    def attribute(self, symbols: list[Symbol], name: str, depth: int = 0) -> list[Symbol]:
        """What `.name` means on any of these."""
        members: list[Symbol] = []
        for entry in symbols if depth < MAX_DEPTH else ():
            if isinstance(entry, ModuleSymbols):
                members += self.member(entry, name, depth + 1)
            elif entry.kind == "class":
                members += entry.module.definitions.get(f"{entry.name}.{name}") or self.attribute(
                    [
                        base
                        for written in entry.node.bases
                        for base in self.resolve_expression(entry.module, written, depth + 1)
                    ],
                    name,
                    depth + 1,
                )
            elif kind := class_of(entry.node, entry.short):
                members += self.attribute(self.resolve_expression(entry.module, kind, depth + 1), name, depth + 1)
        return members

    def resolve_expression(self, module: ModuleSymbols, expression: ast.expr, depth: int = 0) -> list[Symbol]:
        """What a name or a dotted name in a module's text means."""
        dotted = name_of(expression)
        return self.resolve(module, dotted, expression.lineno, depth + 1) if dotted and depth < MAX_DEPTH else []

    def resolve(self, module: ModuleSymbols, dotted: str, line: int, depth: int = 0) -> list[Symbol]:
        """What a dotted name means on a line of a module."""
        first, *rest = dotted.split(".")
        symbols = self.local(module, first, line) or self.member(module, first, depth + 1)
        for name in rest:
            symbols = self.attribute(symbols, name, depth + 1)
        return symbols

    def local(self, module: ModuleSymbols, name: str, line: int) -> list[Symbol]:
        for around in module.enclosing(line):
            if is_class(around):
                continue
            if around.owner and is_class(around.owner) and name in ("self", "cls"):
                return [around.owner]
            if nested := module.definitions.get(f"{around.name}.{name}"):
                return [*nested]
            arguments = around.node.args
            for argument in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ):
                if argument is not None and argument.arg == name:
                    return [SymbolDefinition(module, name, argument, "argument", around)]
            for node in own_nodes(around.node):
                if name in bound_by(node):
                    return [SymbolDefinition(module, name, node, "variable", around)]
        return []

    def find_definitions(self, symbol: str) -> list[SymbolDefinition]:
        """Every definition of this name, or of a dotted name that ends so."""
        matching: list[SymbolDefinition] = []
        for module in self.modules_mentioning({symbol.rpartition(".")[2]}):
            for name, definitions in module.definitions.items():
                if f".{module.dotted}.{name}".endswith(f".{symbol}"):
                    matching += definitions
        return sorted(matching, key=lambda item: (item.name.count("."), "test" in item.module.path, item.module.path))


def python_files() -> Iterator[str]:
    count = 0
    for directory, below, names in os.walk("."):
        below[:] = sorted(name for name in below if name not in SKIPPED)
        for name in sorted(names):
            path = os.path.join(directory, name)[2:]
            if name.endswith(".py") and stat.S_ISREG(os.lstat(path).st_mode):
                count += 1
                if count > MAX_FILES:
                    return
                yield path


def dotted_of(path: str) -> str:
    return path[:-3].removesuffix("/__init__").replace("/", ".")


def read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= MAX_BYTES else None


def parse(path: str, content: bytes) -> ModuleSymbols | None:
    try:
        return ModuleSymbols(path, content.decode("utf-8", "replace"), ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_class(definition: SymbolDefinition | None) -> bool:
    return definition is not None and definition.kind == "class"


def bound_by(node: ast.AST) -> list[str]:
    """Names that a statement itself binds."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        return [node.name]
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def own_nodes(function: Any) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, SCOPES):
            pending.extend(ast.iter_child_nodes(node))


def name_of(node: ast.expr) -> str | None:
    """`a.b.c` as it is written, or None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def class_of(node: ast.AST, name: str) -> ast.expr | None:
    """The expression for the class of a variable: its annotation, or what is called to make it."""
    if isinstance(node, ast.arg) or (isinstance(node, ast.AnnAssign) and name_of(node.target) == name):
        return node.annotation
    value = getattr(node, "value", None)
    return value.func if isinstance(value, ast.Call) else None


def symbol_at(module: ModuleSymbols, line: int, column: int | None) -> str | None:
    """The dotted name on a line that ends with the identifier at a column; without one, the first name bound there."""
    text = module.lines[line - 1] if line <= len(module.lines) else ""
    for match in re.finditer(r"[^\W\d]\w*(\s*\.\s*[^\W\d]\w*)*", text):
        if column is not None and match.start() < column <= match.end() + 1:
            end = column - 1
            while end < match.end() and (text[end].isalnum() or text[end] == "_"):
                end += 1
            return re.sub(r"\s", "", text[match.start() : end]).rstrip(".")
    if column is None:
        for definitions in module.definitions.values():
            for definition in definitions:
                if definition.node.lineno == line:
                    return definition.short
    return None


def references(index: SymbolIndex, target: SymbolDefinition) -> tuple[list[Position], list[Position]]:
    """Positions that mean the target, and those that may: for a method, every attribute of its name."""
    name = target.short
    certain: list[Position] = []
    possible: list[Position] = []
    loose = target.owner is not None
    for module, spelled in spellings(index, target).items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id in spelled:
                if means(index.resolve(module, node.id, node.lineno), target):
                    certain.append((module, node.lineno, node.col_offset))
            elif isinstance(node, ast.Attribute) and node.attr == name:
                line = node.end_lineno or node.lineno
                position = (module, line, (node.end_col_offset or 0) - len(name))
                dotted = name_of(node)
                symbols = index.resolve(module, dotted, node.lineno) if dotted else []
                if means(symbols, target):
                    certain.append(position)
                elif not symbols and loose:
                    possible.append(position)
            elif isinstance(node, ast.ImportFrom):
                names = (alias.asname or alias.name for alias in node.names)
                if any(bound in spelled and means(index.member(module, bound), target) for bound in names):
                    certain.append((module, node.lineno, node.col_offset))
    return certain, possible


def spellings(index: SymbolIndex, target: SymbolDefinition) -> dict[ModuleSymbols, set[str]]:
    """The files that may mean the target, each with the names it has there: an import can give it another one, under
    which a third file imports it again."""
    names, by_module = {target.short}, {}
    for _ in range(MAX_DEPTH):
        for module in index.modules_mentioning(names):
            aliases = {alias for alias in module.imports if means(index.imported(module, alias), target)}
            by_module[module] = {target.short, *aliases}
        if set().union(*by_module.values()) <= names:
            break
        names = set().union(*by_module.values())
    return by_module


def means(symbols: list[Symbol], target: SymbolDefinition) -> bool:
    here = (target.module.path, target.name)
    return any(isinstance(entry, SymbolDefinition) and (entry.module.path, entry.name) == here for entry in symbols)


def location(module: ModuleSymbols, line: int, column: int, **more: str) -> dict[str, Any]:
    text = module.lines[line - 1].strip()[:200] if line <= len(module.lines) else ""
    return {"path": module.path, "line": line, "column": column + 1, "text": text, **more}


def to_dict(entry: Symbol) -> dict[str, Any]:
    if isinstance(entry, ModuleSymbols):
        return location(entry, 1, 0, kind="module", name=entry.dotted)
    return location(entry.module, entry.node.lineno, entry.node.col_offset, kind=entry.kind, name=entry.name)


def find_symbol(request: dict[str, Any]) -> dict[str, Any]:
    index = SymbolIndex()
    path, line, symbol = request.get("path"), request.get("line", 0), request.get("symbol")
    module = index.module_at(path) if path in index.paths else None
    if path and module is None:
        return {"problem": f"{path} is no Python file that can be parsed"}
    symbol = symbol or (symbol_at(module, line, request.get("column")) if module else None)
    if symbol is None:
        return {"problem": f"no name at line {line} of {path}"}
    symbols = index.resolve(module, symbol, line or len(module.lines)) if module else []
    if module and not symbols:
        symbols = [*module.definitions.get(symbol, [])]
    followed = bool(symbols) or module is None
    symbols = symbols or [*(index.find_definitions(symbol) or index.find_definitions(symbol.rpartition(".")[2]))]
    if not symbols and (whole := index.find_module(symbol)):
        symbols = [whole]
    result = {
        "symbol": symbol,
        "followed": followed,
        "count": len(symbols),
        "definitions": [to_dict(entry) for entry in symbols[:MAX_RESULTS]],
    }
    if request.get("references") and symbols and isinstance(symbols[0], SymbolDefinition):
        certain, possible = references(index, symbols[0])
        for key, positions in (("references", certain), ("possible", possible)):
            ordered = sorted(set(positions), key=lambda position: (position[0].path, position[1:]))
            result[key] = [location(*position) for position in ordered[:MAX_RESULTS]]
            result[f"{key}_count"] = len(ordered)
    result["unread"] = index.unread
    return result


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    json.dump(find_symbol(json.loads(sys.argv[1])), sys.stdout)
