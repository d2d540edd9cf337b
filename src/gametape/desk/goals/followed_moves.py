"""Moves within the product that the check has to follow: a module with another name, a package that goes to `src`.

A pinned file that differs from the agent's only in the module of the product from which it imports the same names is
used as the agent left it. That gives the agent nothing: a module under the old name could hand on the same. So is a
conftest, old or new, with more fixtures whose names stand in no test that was there. And where the product went from
the top of the workspace to `src`, that is where it is imported from.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.source import parse_or_none

_SOURCES = "src"
_SCOPES = ("function", "class", "module", "package", "session")
_PLAIN_MARKS = tuple(
    [mark]
    for mark in ("pytest.fixture", "pytest.fixture()", *(f"pytest.fixture(scope='{scope}')" for scope in _SCOPES))
)
_OF_PYTEST = re.compile(
    "cache|capfd|capfdbinary|caplog|capsys|capsysbinary|doctest_namespace|monkeypatch|pytestconfig|record_\\w+|recwarn|"
    "request|subtests|testdir|pytester|tmp_path|tmp_path_factory|tmpdir|tmpdir_factory"
)
"""Fixtures that pytest has by itself."""


@dataclass(frozen=True)
class FollowedMoves:
    """What of the check follows a move of the product."""

    files: SourceTree
    """Files of the check that name moved modules, and conftest files with more fixtures, as the agent left them."""
    roots: tuple[str, ...] = ()
    """Directories from which moved packages are imported."""


def follow_moves(
    start: SourceTree, after: SourceTree, check_paths: Sequence[str], import_roots: Sequence[str]
) -> FollowedMoves:
    """Compare the trees. `after` has the agent's version of every file; the check lies at or below some paths."""
    roots = (_SOURCES,) if _SOURCES not in import_roots and _moved_to_sources(start, after) else ()
    modules = _Modules(start, after, (*import_roots, *roots), check_paths)
    changed = {
        path
        for path in start.under(list(check_paths))
        if path.endswith(".py") and path in after and start.files[path] != after.files[path]
    }
    followed = {path for path in changed if modules.differ_alone(path)}
    new = {path for path in after.under(list(check_paths)) if path not in start and modules.has_fixtures_alone(path)}
    return FollowedMoves(after.only(followed | new), roots)


def _moved_to_sources(start: SourceTree, after: SourceTree) -> bool:
    """Whether a module or package at the top is gone, and lies in `src` now."""
    tops = {path.partition("/")[0] for path in start if path.endswith(".py")}
    gone = tops - {path.partition("/")[0] for path in after if path.endswith(".py")} - {_SOURCES}
    return any(after.under([f"{_SOURCES}/{name}"]).files for name in gone)


class _Modules:
    """The modules of the product before and after."""

    def __init__(self, start: SourceTree, after: SourceTree, roots: Sequence[str], test_paths: Sequence[str]) -> None:
        self._start, self._after, self._roots, self._tests = start, after, roots, list(test_paths)

    def differ_alone(self, path: str) -> bool:
        """Whether two versions of a file are the same but for the modules that they import the same names from."""
        before = parse_or_none(self._start.files[path], bounded=True)
        after = parse_or_none(self._after.files[path], bounded=True)
        if before is None or after is None:
            return False
        if path.rpartition("/")[2] == "conftest.py":
            after.body = [node for node in after.body if not self._is_new_fixture(node)]
        old, new = _imports(before), _imports(after)
        if len(old) != len(new):
            return False
        for one, other in zip(old, new, strict=True):
            if type(one) is not type(other) or not self._is_moved(one, other):
                return False
            _forget_module(one)
            _forget_module(other)
        return ast.dump(before) == ast.dump(after)

    def has_fixtures_alone(self, path: str) -> bool:
        """Whether a conftest that was not there has nothing but modules that it imports and fixtures for new tests."""
        if path.rpartition("/")[2] != "conftest.py":
            return False
        tree = parse_or_none(self._after.files[path], bounded=True)
        return tree is not None and all(
            self._is_new_fixture(node) or _is_text(node) or (isinstance(node, ast.Import) and _binds_modules(node))
            for node in tree.body
        )

    def _is_new_fixture(self, node: ast.stmt) -> bool:
        """Whether a statement defines a fixture that only new tests can ask for."""
        if not isinstance(node, ast.FunctionDef) or [*map(ast.unparse, node.decorator_list)] not in _PLAIN_MARKS:
            return False
        given = node.args
        named = (*given.args, *given.kwonlyargs, *given.posonlyargs)
        evaluated = [*given.defaults, *given.kw_defaults, node.returns, *(one.annotation for one in named)]
        word = re.compile(rb"\b" + re.escape(node.name.encode()) + rb"\b")
        known = any(word.search(self._start.files[path]) for path in self._start.under(self._tests))
        return not any(evaluated) and not known and not _OF_PYTEST.fullmatch(node.name)

    def _is_moved(self, old: ast.Import | ast.ImportFrom, new: ast.Import | ast.ImportFrom) -> bool:
        if isinstance(old, ast.ImportFrom) and isinstance(new, ast.ImportFrom):
            pairs = [(old.module, new.module)] if (old.level, old.module) != (new.level, new.module) else []
            if pairs and (old.level or new.level):
                return False
        else:
            pairs = [
                (one.name, other.name)
                for one, other in zip(old.names, new.names, strict=False)
                if one.name != other.name and one.asname and other.asname
            ]
        return all(self._is_product(one, self._start) and self._is_product(other, self._after) for one, other in pairs)

    def _is_product(self, module: str | None, tree: SourceTree) -> bool:
        stem = (module or "").replace(".", "/")
        places = [f"{'' if root == '.' else f'{root}/'}{stem}" for root in (*self._roots, ".")]
        names = [name for place in places for name in (f"{place}.py", f"{place}/__init__.py")]
        return bool(stem) and any(name in tree and not is_under(name, self._tests) for name in names)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _binds_modules(node: ast.Import) -> bool:
    return not any((alias.asname or alias.name).startswith("pytest_") for alias in node.names)


def _imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def _forget_module(node: ast.Import | ast.ImportFrom) -> None:
    """Leave of an import the names that it binds and, of a module, what it takes from there."""
    if isinstance(node, ast.ImportFrom):
        node.module = ""
    else:
        for alias in node.names:
            alias.name = "" if alias.asname else alias.name
