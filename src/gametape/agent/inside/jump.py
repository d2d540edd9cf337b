"""Find definitions and references in the Python files below the current directory, by their syntax alone.

Runs inside the sandbox: `python -I -c SCRIPT QUESTION`, with the question and the answer in JSON. Nothing is imported
and nothing is executed of what is read. What cannot be followed is looked up by its name, and the answer says so.
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
MOST_FILES, MOST_BYTES, MOST_ANSWERS, DEEPEST = 5000, 1_000_000, 100, 12
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
        todo: list[ast.AST] = list(reversed(body))
        while todo:
            node = todo.pop()
            if isinstance(node, SCOPES):
                kind = "class" if isinstance(node, ast.ClassDef) else "method" if is_class(owner) else "function"
                found = SymbolDefinition(self, prefix + node.name, node, kind, owner)
                self.definitions.setdefault(found.name, []).append(found)
                self._bind(node.body, f"{found.name}.", found)
                continue
            if owner is None or is_class(owner):
                for name in bound_by(node):
                    found = SymbolDefinition(self, prefix + name, node, "variable", owner)
                    self.definitions.setdefault(found.name, []).append(found)
            todo.extend(reversed([child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]))

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
        every = (one for many in self.definitions.values() for one in many if isinstance(one.node, SCOPES))
        around = [one for one in every if one.node.lineno <= line <= (one.node.end_lineno or one.node.lineno)]
        return sorted(around, key=lambda one: -one.node.lineno)


if TYPE_CHECKING:
    Thing = SymbolDefinition | ModuleSymbols
    Spot = tuple[ModuleSymbols, int, int]


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
            self.parsed[path] = found = parse(path, content) if content is not None else None
            self.unread += found is None
        return self.parsed[path]

    def find_module(self, dotted: str) -> ModuleSymbols | None:
        """The file of a module; its name may lack leading directories such as `src`."""
        return self.module_at(self.by_ending[dotted]) if dotted in self.by_ending else None

    def modules_mentioning(self, names: set[str]) -> list[ModuleSymbols]:
        """Files in whose text one of these names occurs."""
        wanted = re.compile("|".join(re.escape(name) for name in sorted(names)).encode())
        texts = ((path, read(path)) for path in self.paths)
        found = (self.module_at(path) for path, content in texts if content is not None and wanted.search(content))
        return [module for module in found if module]

    def member(self, module: ModuleSymbols, name: str, depth: int = 0) -> list[Thing]:
        """What `name` means in a module: its own definitions, or the module it is, through imports."""
        if name in module.definitions:
            return [*module.definitions[name]]
        if depth < DEEPEST:
            if name in module.imports:
                return self.imported(module, name, depth + 1)
            for source in module.starred:
                other = self.find_module(source)
                if other and other is not module and (found := self.member(other, name, depth + 1)):
                    return found
        inner = self.find_module(f"{module.dotted}.{name}") if module.is_package else None
        return [inner] if inner else []

    def imported(self, module: ModuleSymbols, name: str, depth: int = 0) -> list[Thing]:
        source, member = module.imports[name]
        other = self.find_module(source)
        if member is None:
            return [other] if other else []
        if other is not None and (found := self.member(other, member, depth + 1)):
            return found
        inner = self.find_module(f"{source}.{member}")
        return [inner] if inner else []

    def attribute(self, things: list[Thing], name: str, depth: int = 0) -> list[Thing]:
        """What `.name` means on any of these."""
        found: list[Thing] = []
        for thing in things if depth < DEEPEST else ():
            if isinstance(thing, ModuleSymbols):
                found += self.member(thing, name, depth + 1)
            elif thing.kind == "class":
                found += thing.module.definitions.get(f"{thing.name}.{name}") or self.attribute(
                    [
                        base
                        for written in thing.node.bases
                        for base in self.resolve_expression(thing.module, written, depth + 1)
                    ],
                    name,
                    depth + 1,
                )
            elif kind := class_of(thing.node, thing.short):
                found += self.attribute(self.resolve_expression(thing.module, kind, depth + 1), name, depth + 1)
        return found

    def resolve_expression(self, module: ModuleSymbols, expression: ast.expr, depth: int = 0) -> list[Thing]:
        """What a name or a dotted name in a module's text means."""
        dotted = name_of(expression)
        return self.resolve(module, dotted, expression.lineno, depth + 1) if dotted and depth < DEEPEST else []

    def resolve(self, module: ModuleSymbols, dotted: str, line: int, depth: int = 0) -> list[Thing]:
        """What a dotted name means on a line of a module."""
        first, *rest = dotted.split(".")
        things = self.local(module, first, line) or self.member(module, first, depth + 1)
        for name in rest:
            things = self.attribute(things, name, depth + 1)
        return things

    def local(self, module: ModuleSymbols, name: str, line: int) -> list[Thing]:
        for around in module.enclosing(line):
            if is_class(around):
                continue
            if around.owner and is_class(around.owner) and name in ("self", "cls"):
                return [around.owner]
            if nested := module.definitions.get(f"{around.name}.{name}"):
                return [*nested]
            arguments = around.node.args
            for one in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ):
                if one is not None and one.arg == name:
                    return [SymbolDefinition(module, name, one, "argument", around)]
            for node in own_nodes(around.node):
                if name in bound_by(node):
                    return [SymbolDefinition(module, name, node, "variable", around)]
        return []

    def find_definitions(self, symbol: str) -> list[SymbolDefinition]:
        """Every definition of this name, or of a dotted name that ends so."""
        found: list[SymbolDefinition] = []
        for module in self.modules_mentioning({symbol.rpartition(".")[2]}):
            for name, many in module.definitions.items():
                if f".{module.dotted}.{name}".endswith(f".{symbol}"):
                    found += many
        return sorted(found, key=lambda one: (one.name.count("."), "test" in one.module.path, one.module.path))


def python_files() -> Iterator[str]:
    count = 0
    for directory, below, names in os.walk("."):
        below[:] = sorted(name for name in below if name not in SKIPPED)
        for name in sorted(names):
            path = os.path.join(directory, name)[2:]
            if name.endswith(".py") and stat.S_ISREG(os.lstat(path).st_mode):
                count += 1
                if count > MOST_FILES:
                    return
                yield path


def dotted_of(path: str) -> str:
    return path[:-3].removesuffix("/__init__").replace("/", ".")


def read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= MOST_BYTES else None


def parse(path: str, content: bytes) -> ModuleSymbols | None:
    try:
        return ModuleSymbols(path, content.decode("utf-8", "replace"), ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_class(definition: SymbolDefinition | None) -> bool:
    return definition is not None and definition.kind == "class"


def bound_by(node: ast.AST) -> list[str]:
    """Names that a statement binds itself."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        return [node.name]
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def own_nodes(function: Any) -> Iterator[ast.AST]:
    """What belongs to a function and to none inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, SCOPES):
            todo.extend(ast.iter_child_nodes(node))


def name_of(node: ast.expr) -> str | None:
    """`a.b.c` as it is written, or None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def class_of(node: ast.AST, name: str) -> ast.expr | None:
    """The expression that says of which class a variable is: its annotation, or what is called to make it."""
    if isinstance(node, ast.arg) or (isinstance(node, ast.AnnAssign) and name_of(node.target) == name):
        return node.annotation
    value = getattr(node, "value", None)
    return value.func if isinstance(value, ast.Call) else None


def symbol_at(module: ModuleSymbols, line: int, column: int | None) -> str | None:
    """The dotted name on a line that ends with the identifier at a column; without one, the first name bound there."""
    text = module.lines[line - 1] if line <= len(module.lines) else ""
    for found in re.finditer(r"[^\W\d]\w*(\s*\.\s*[^\W\d]\w*)*", text):
        if column is not None and found.start() < column <= found.end() + 1:
            end = column - 1
            while end < found.end() and (text[end].isalnum() or text[end] == "_"):
                end += 1
            return re.sub(r"\s", "", text[found.start() : end]).rstrip(".")
    if column is None:
        for many in module.definitions.values():
            for one in many:
                if one.node.lineno == line:
                    return one.short
    return None


def references(index: SymbolIndex, target: SymbolDefinition) -> tuple[list[Spot], list[Spot]]:
    """Places that mean the target, or may: for a method, every attribute of its name."""
    name = target.short
    sure: list[Spot] = []
    maybe: list[Spot] = []
    loose = target.owner is not None
    for module, spelled in spellings(index, target).items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id in spelled:
                if means(index.resolve(module, node.id, node.lineno), target):
                    sure.append((module, node.lineno, node.col_offset))
            elif isinstance(node, ast.Attribute) and node.attr == name:
                line = node.end_lineno or node.lineno
                place = (module, line, (node.end_col_offset or 0) - len(name))
                dotted = name_of(node)
                things = index.resolve(module, dotted, node.lineno) if dotted else []
                if means(things, target):
                    sure.append(place)
                elif not things and loose:
                    maybe.append(place)
            elif isinstance(node, ast.ImportFrom) and any((one.asname or one.name) in spelled for one in node.names):
                known = (alias.asname or alias.name for alias in node.names)
                if any(one in spelled and means(index.member(module, one), target) for one in known):
                    sure.append((module, node.lineno, node.col_offset))
    return sure, maybe


def spellings(index: SymbolIndex, target: SymbolDefinition) -> dict[ModuleSymbols, set[str]]:
    """The files that may mean the target, each with the names it has there: an import can give it another one, under
    which a third file imports it again."""
    names, found = {target.short}, {}
    for _ in range(DEEPEST):
        for module in index.modules_mentioning(names):
            aliases = {alias for alias in module.imports if means(index.imported(module, alias), target)}
            found[module] = {target.short, *aliases}
        if set().union(*found.values()) <= names:
            break
        names = set().union(*found.values())
    return found


def means(things: list[Thing], target: SymbolDefinition) -> bool:
    here = (target.module.path, target.name)
    return any(isinstance(thing, SymbolDefinition) and (thing.module.path, thing.name) == here for thing in things)


def location(module: ModuleSymbols, line: int, column: int, **more: str) -> dict[str, Any]:
    text = module.lines[line - 1].strip()[:200] if line <= len(module.lines) else ""
    return {"path": module.path, "line": line, "column": column + 1, "text": text, **more}


def to_dict(thing: Thing) -> dict[str, Any]:
    if isinstance(thing, ModuleSymbols):
        return location(thing, 1, 0, kind="module", name=thing.dotted)
    return location(thing.module, thing.node.lineno, thing.node.col_offset, kind=thing.kind, name=thing.name)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    index = SymbolIndex()
    path, line, symbol = question.get("path"), question.get("line", 0), question.get("symbol")
    module = index.module_at(path) if path in index.paths else None
    if path and module is None:
        return {"problem": f"{path} is no Python file that can be parsed"}
    symbol = symbol or (symbol_at(module, line, question.get("column")) if module else None)
    if symbol is None:
        return {"problem": f"no name at line {line} of {path}"}
    things = index.resolve(module, symbol, line or len(module.lines)) if module else []
    if module and not things:
        things = [*module.definitions.get(symbol, [])]
    followed = bool(things) or module is None
    things = things or [*(index.find_definitions(symbol) or index.find_definitions(symbol.rpartition(".")[2]))]
    if not things and (whole := index.find_module(symbol)):
        things = [whole]
    result = {
        "symbol": symbol,
        "followed": followed,
        "count": len(things),
        "definitions": [to_dict(thing) for thing in things[:MOST_ANSWERS]],
    }
    if question.get("references") and things and isinstance(things[0], SymbolDefinition):
        sure, maybe = references(index, things[0])
        for key, found in (("references", sure), ("possible", maybe)):
            spots = sorted(set(found), key=lambda one: (one[0].path, one[1:]))
            result[key] = [location(*one) for one in spots[:MOST_ANSWERS]]
            result[f"{key}_count"] = len(spots)
    result["unread"] = index.unread
    return result


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
