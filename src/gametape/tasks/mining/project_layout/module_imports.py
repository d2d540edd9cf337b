"""Find the modules that a file imports, and which of them are optional."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.syntax.source import parse


@dataclass(frozen=True)
class ImportedModules:
    """Absolute dotted names. `needed` are imported whenever the file is; `optional` may be."""

    needed: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    @property
    def top_level(self) -> frozenset[str]:
        return frozenset(name.partition(".")[0] for name in self.needed | self.optional)

    @property
    def needed_top_level(self) -> frozenset[str]:
        return frozenset(name.partition(".")[0] for name in self.needed)


@functools.lru_cache(maxsize=4096)
def imports_in(source: bytes) -> ImportedModules:
    """The imports of a file; none if it cannot be parsed."""
    module = parse_or_none(source)
    if module is None:
        return ImportedModules()
    imports = [*_imports(module.body, certain=True)]
    needed = frozenset(name for name, certain in imports if certain)
    return ImportedModules(needed, frozenset(name for name, _ in imports) - needed)


@functools.lru_cache(maxsize=4096)
def parse_or_none(source: bytes) -> ast.Module | None:
    try:
        return parse(source)
    except SyntaxError:
        return None


def _imports(body: list[ast.stmt], certain: bool) -> Iterator[tuple[str, bool]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, certain) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield node.module, certain
                yield from ((f"{node.module}.{alias.name}", False) for alias in node.names)
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from _imports(node.body, certain)
        else:
            yield from ((name, False) for inner in ast.walk(node) for name in _anywhere(inner))


def _anywhere(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("importorskip", "import_module", "__import__") and isinstance(node.args[0].value, str):
            yield node.args[0].value
