"""Find held-out tests in what the agent is given. A test that can be read is no longer held out."""

import ast
from collections.abc import Iterator

from gametape.core.task import TaskTests
from gametape.verify.tree import Tree


def leaks(tests: TaskTests, start: Tree, suite: Tree) -> Iterator[tuple[str, str]]:
    """Where held-out tests stand in the starting tree: each file with what it gives away.

    Looked for are the test function by its name, where it would be or inherited there, and a whole file of held-out
    tests under any other name.
    """
    modules: dict[str, ast.Module | None] = {}
    for test in tests.held_out:
        path, *names = test.partition("[")[0].split("::")
        if path in start:
            module = modules.setdefault(path, _parsed(start.files[path]))
            if module is not None and _defines(module.body, names):
                yield path, test
    shown_files = {test.partition("::")[0] for test in tests.visible}
    hidden = {test.partition("::")[0] for test in tests.held_out} - shown_files
    for path, content in start.files.items():
        for twin in sorted(hidden):
            if content.strip() and content == suite.files[twin]:
                yield path, f"all of {twin}"


def _parsed(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _defines(body: list[ast.stmt], names: list[str]) -> bool:
    """Whether a body has a function under this name, class by class; classes have what their bases in the body have."""
    name, *inner = names
    found = [node for node in _statements(body) if getattr(node, "name", None) == name]
    if not inner:
        return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in found)
    return any(_class_defines(body, node, inner, {name}) for node in found if isinstance(node, ast.ClassDef))


def _class_defines(body: list[ast.stmt], owner: ast.ClassDef, names: list[str], seen: set[str]) -> bool:
    if _defines(owner.body, names):
        return True
    bases = {base.id for base in owner.bases if isinstance(base, ast.Name)} - seen
    return any(
        _class_defines(body, node, names, seen | bases)
        for node in _statements(body)
        if isinstance(node, ast.ClassDef) and node.name in bases
    )


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, with those under an `if` or `try`."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(node, part, []))
