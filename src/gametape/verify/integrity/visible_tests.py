"""Find where visible tests are defined: in the class that their ids name, or in a base, perhaps in another file.

Bases are followed as far as the starting tree's tests define them. The product's own classes are not followed: those
may change.
"""

import ast
import functools
from dataclasses import dataclass, field

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import is_under
from gametape.syntax.names import bound_names
from gametape.syntax.pytest_ids import split_test_id
from gametape.syntax.source import decode_source
from gametape.syntax.suite_files import TestFiles
from gametape.verify.integrity.code_view import cached_by_task

DefinitionKey = tuple[str, str]
"""A file and a class in it, as in a test id; an empty name is the module."""


@dataclass(frozen=True)
class VisibleTests:
    """The names of visible tests, by file, as `Class.name`."""

    tests: dict[str, set[str]] = field(default_factory=dict)
    """Visible tests and their classes, in the files that their ids name."""
    defined: dict[str, set[str]] = field(default_factory=dict)
    """The same in the files where they are defined, bases included."""
    inherited: dict[str, set[str]] = field(default_factory=dict)
    """Names that no class defines yet and that would take an inherited test's place."""
    generated: dict[str, set[str]] = field(default_factory=dict)
    """Classes whose tests no definition explains; an empty name is the module itself."""


def find_visible_tests(loaded_task: LoadedTask) -> VisibleTests:
    return cached_by_task(_VISIBLE_TESTS, loaded_task, _read_visible_tests)


_VISIBLE_TESTS: dict[str, VisibleTests] = {}


def _read_visible_tests(loaded_task: LoadedTask) -> VisibleTests:
    visible = VisibleTests()
    tests = [split_test_id(test) for test in loaded_task.task.tests.visible]
    files = _suite_files(loaded_task, {path for path, _ in tests})
    lineages: dict[DefinitionKey, list[tuple[DefinitionKey, ast.AST]]] = {}
    for path, qualname in tests:
        owner, name = qualname.rpartition("::")[0], qualname.rpartition("::")[2]
        _add_names(visible.tests, path, owner, qualname)
        _add_names(visible.defined, path, owner, qualname)
        if (path, owner) not in lineages:
            lineages[path, owner] = _lineage(files, path, owner)
        before: list[DefinitionKey] = []
        for (file, around), node in lineages[path, owner]:
            if name in _members(node):
                _add_names(visible.defined, file, around, f"{around}::{name}".removeprefix("::"))
                break
            before.append((file, around))
        else:
            for (file, around), _ in lineages[path, owner]:
                visible.generated.setdefault(file, set()).add(around.replace("::", "."))
            continue
        for file, around in before:
            _add_names(visible.defined, file, around)
            _add_names(visible.inherited, file, f"{around}::{name}")
    return visible


def _add_names(where: dict[str, set[str]], path: str, *names: str) -> None:
    where.setdefault(path, set()).update(name.replace("::", ".") for name in names if name)


def _suite_files(loaded_task: LoadedTask, visible: set[str]) -> TestFiles:
    """The files of the starting tree in which tests and their bases are looked for."""
    task = loaded_task.task
    return TestFiles(
        {
            path: decode_source(content).encode("utf-8", "surrogatepass")
            for path, content in loaded_task.start.files.items()
            if path in visible or is_under(path, task.test_paths) or not is_under(path, task.source_paths)
        }
    )


def _lineage(files: TestFiles, path: str, owner: str) -> list[tuple[DefinitionKey, ast.AST]]:
    """A class and its bases, nearest first, as far as files of the tests define them; else the module."""
    file = files.parsed.get(path)
    if file and owner in file.classes:
        return [((home.path, name), node) for home, name, node in files.lineage(path, owner)]
    return [((path, ""), file.module if file else ast.Module([], []))]


@functools.lru_cache(maxsize=256)
def _members(node: ast.AST) -> frozenset[str]:
    """What the body of a class or of a module binds."""
    return bound_names(node)
