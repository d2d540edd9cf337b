"""Names of the product that tests read and that are no functions: flags, tolerances, tables, classes behind a name.

A changed value can switch a test off without touching it, and it can be the work. A change is told, and accuses nobody.
"""

import ast
from collections.abc import Collection, Sequence

from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.source import parse_or_none

_CODE = "code"


def changed_values(start: SourceTree, after: SourceTree, test_paths: Sequence[str]) -> list[str]:
    """Such names (`module.name`) with another value than in the start tree, where tests of the start tree read them."""
    changed = [
        (path, name)
        for path in start
        if path.endswith(".py") and not is_under(path, list(test_paths)) and start.files[path] != after.files.get(path)
        for name in _changed(start.files[path], after.files.get(path, b""))
    ]
    if not changed:
        return []
    tests = [start.files[path] for path in start if path.endswith(".py") and is_under(path, list(test_paths))]
    read = [_names_read(tree) for text in tests if (tree := parse_or_none(text, bounded=True)) is not None]
    return sorted(f"{_module(path)}.{name}" for path, name in changed if any(_reads(one, path, name) for one in read))


def _changed(before: bytes, after: bytes) -> set[str]:
    """Module-level names that were or became a value, and whose text is another one now."""
    old, new = _bindings(before), _bindings(after)
    return {name for name, text in old.items() if name in new and text != new[name]}


def _bindings(source: bytes) -> dict[str, str]:
    """The names that a module binds at its top: the text of a value, or that it is code (a function or a class)."""
    tree = parse_or_none(source, bounded=True)
    found: dict[str, str] = {}
    for node in tree.body if tree else []:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = _CODE
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            text = _CODE if isinstance(node.value, ast.Lambda) else ast.unparse(node.value)
            found |= {target.id: text for target in targets if isinstance(target, ast.Name)}
    return found


def _names_read(tree: ast.Module) -> tuple[Collection[str], Collection[str]]:
    """The modules that a test imports (the last part of each), and all names and attributes in it."""
    modules: set[str] = set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom):
            modules |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return modules, names


def _reads(read: tuple[Collection[str], Collection[str]], path: str, name: str) -> bool:
    modules, names = read
    return name in names and any(part in modules for part in _module(path).split("."))


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")
