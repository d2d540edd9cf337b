"""Imports and bound names: the one import table, and which names a piece of code binds."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
    ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


@dataclass(frozen=True)
class ImportBinding:
    """One name that an import statement brings."""

    node: ast.Import | ast.ImportFrom
    module: str
    """As written, with the leading dots of a relative import."""
    name: str
    """The name in the module, `*` for all of them; empty where the module itself is imported."""
    alias: str | None

    @property
    def target(self) -> str:
        """The dotted name of what is imported."""
        return f"{self.module}{'' if self.module.endswith('.') else '.'}{self.name}" if self.name else self.module

    @property
    def local(self) -> str:
        """The name that it is bound to."""
        return self.alias or self.name or self.module.split(".")[0]

    @property
    def origin(self) -> str:
        """The dotted name of what the local name stands for: `import a.b` binds `a` to `a`."""
        return self.target if self.name or self.alias else self.local

    @property
    def is_relative(self) -> bool:
        return self.module.startswith(".")


def imports_of(node: ast.AST) -> list[ImportBinding]:
    """What one statement imports; empty for other nodes."""
    if isinstance(node, ast.Import):
        return [ImportBinding(node, alias.name, "", alias.asname) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [ImportBinding(node, module, alias.name, alias.asname) for alias in node.names]
    return []


def imports_in(tree: ast.AST) -> Iterator[ImportBinding]:
    """Everything that is imported anywhere in a tree, in the order of `ast.walk`."""
    for node in ast.walk(tree):
        yield from imports_of(node)


def import_origins(tree: ast.AST) -> dict[str, str]:
    """The names that imports anywhere in a tree bind, with the dotted names they stand for."""
    return {imported.local: imported.origin for imported in imports_in(tree)}


def imported_modules(tree: ast.AST) -> list[str]:
    """Dotted names that may be modules: for `from a import b` both `a` and `a.b`; relative ones keep their dots."""
    names: list[str] = []
    for imported in imports_in(tree):
        names += [imported.module, *([imported.target] if imported.name else [])]
    return names


def bound_names(tree: ast.AST, inner_scopes: bool = False) -> frozenset[str]:
    """The names that a module, class or function binds: by assignment, import, definition, capture or handler.

    Without `inner_scopes`, the bodies of functions, classes, lambdas and comprehensions inside it do not count. With
    them, a function's own name and all parameters count too.
    """
    names: set[str] = set()
    todo: list[ast.AST] = [tree] if inner_scopes else [*ast.iter_child_nodes(tree)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            names |= set() if isinstance(node.ctx, ast.Load) else {node.id}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {imported.local for imported in imports_of(node)}
        elif isinstance(node, ast.MatchMapping):
            names |= {node.rest} if node.rest else set()
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, _NAMED) and node.name:
            names.add(node.name)
        if not isinstance(node, ast.Import | ast.ImportFrom) and (inner_scopes or not isinstance(node, _SCOPES)):
            todo += ast.iter_child_nodes(node)
    return frozenset(names)


def names_in(tree: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def unbound_names(module: ast.Module) -> set[str]:
    """Names that some code of a module reads and that its top level does not bind."""
    read = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return read - bound_names(module)


def is_standard(origin: str | None) -> bool:
    """Whether a dotted name belongs to the standard library or to the test tools, and so not to the code under test."""
    root = (origin or "").split(".")[0]
    return root in {"builtins", "pytest", "hypothesis"} or root in sys.stdlib_module_names
