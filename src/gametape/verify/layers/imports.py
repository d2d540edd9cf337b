"""Which modules a file imports, read from its syntax tree without running it.

Every import counts: inside a function (a deferred cycle is still a cycle), in a branch, and under `TYPE_CHECKING` (a
type is a dependency too). `importlib.import_module` and `__import__` count where the name is a constant; a computed
name cannot be read from the source.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleImport:
    """One import statement or call."""

    line: int
    targets: tuple[str, ...]
    """The modules that it may import: `from a import b` imports `a`, and `a.b` if that is a module."""

    def reaches(self, module: str) -> bool:
        """Whether this imports the module or anything below it."""
        return any(target == module or target.startswith(module + ".") for target in self.targets)


def module_name(path: str, roots: Iterable[str]) -> str | None:
    """The dotted name of a file below the closest of the import roots; None if it cannot be imported."""
    plain = sorted((root.strip("/").removeprefix("./").strip(".") for root in roots), key=len, reverse=True)
    root = next((root for root in plain if not root or path.startswith(root + "/")), None)
    if root is None or not path.endswith(".py"):
        return None
    parts = path.removeprefix(root).strip("/").removesuffix(".py").split("/")
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts) or None


def module_imports(tree: ast.Module, module: str, is_package: bool) -> list[ModuleImport]:
    """Every import of a file, in the order of its lines."""
    package = module if is_package else module.rpartition(".")[0]
    aliases = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "importlib"
        for alias in node.names
        if alias.name in ("import_module", "__import__")
    }
    imports = [imported for node in ast.walk(tree) for imported in _imports_of(node, package, module, aliases)]
    return sorted(imports, key=lambda imported: imported.line)


def _imports_of(node: ast.AST, package: str, module: str, aliases: set[str]) -> Iterator[ModuleImport]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield ModuleImport(node.lineno, (alias.name,))
    elif isinstance(node, ast.ImportFrom):
        base = absolute_module(package, node.level, node.module)
        if base is not None:
            names = [alias.name for alias in node.names if alias.name != "*"]
            members = tuple(f"{base}.{name}" if base else name for name in names)
            yield ModuleImport(node.lineno, (base, *members) if base else members)
    elif isinstance(node, ast.Call) and _imports_by_call(node.func, aliases):
        name = _constant(node.args[0] if node.args else _keyword(node, "name"))
        anchor = _anchor(node, package, module)
        if name is not None:
            level = len(name) - len(name.lstrip("."))
            target = absolute_module(anchor, level, name.lstrip(".") or None)
            if target:
                yield ModuleImport(node.lineno, (target,))


def absolute_module(package: str, level: int, name: str | None) -> str | None:
    """The full name of a relative import; None where it leads out of the top package."""
    if level == 0:
        return name
    parts = package.split(".") if package else []
    if level - 1 > len(parts):
        return None
    parents = parts[: len(parts) - (level - 1)]
    return ".".join([*parents, *([name] if name else [])])


def _imports_by_call(function: ast.expr, aliases: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "__import__" or function.id in aliases
    return isinstance(function, ast.Attribute) and function.attr in ("import_module", "__import__")


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _anchor(call: ast.Call, package: str, module: str) -> str:
    """The package that a relative name given to `import_module` starts from."""
    given = call.args[1] if len(call.args) > 1 else _keyword(call, "package")
    if isinstance(given, ast.Name) and given.id == "__name__":
        return module
    return _constant(given) or package
