"""Where visible tests are defined: in the class that their ids name, or in a base, perhaps of another test file.

Bases are followed as far as the starting tree's tests define them. The product's own classes are not followed: those
may change.
"""

import ast
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import is_under
from gametape.verify.integrity.source_text import decode_source

DefinitionKey = tuple[str, str]
"""A file and a dotted name in it."""

_DEEPEST = 12


@dataclass(frozen=True)
class VisibleTests:
    """What the agent was shown of the tests, by file, as `Class.name`."""

    tests: dict[str, set[str]] = field(default_factory=dict)
    """Visible tests and their classes, at the places that their ids name."""
    defined: dict[str, set[str]] = field(default_factory=dict)
    """The same at the places where they are defined, bases included."""
    inherited: dict[str, set[str]] = field(default_factory=dict)
    """Names that no class defines yet and that would take an inherited test's place."""
    generated: dict[str, set[str]] = field(default_factory=dict)
    """Classes whose tests no definition explains; an empty name is the module itself."""


def find_visible_tests(loaded_task: LoadedTask) -> VisibleTests:
    found = VisibleTests()
    lineages: dict[DefinitionKey, list[DefinitionKey]] = {}
    for test in loaded_task.task.tests.visible:
        path, *names = test.split("[")[0].split("::")
        owner, name = ".".join(names[:-1]), (names or [""])[-1]
        _add_names(found.tests, path, owner, ".".join(names))
        _add_names(found.defined, path, owner, ".".join(names))
        if (path, owner) not in lineages:
            lineages[path, owner] = (_class_and_bases(loaded_task, path, owner) if owner else []) or [(path, "")]
        lineage = lineages[path, owner]
        before = []
        for place in lineage:
            if name in _members(loaded_task, *place):
                _add_names(found.defined, place[0], place[1], f"{place[1]}.{name}".lstrip("."))
                break
            before.append(place)
        else:
            for place in lineage:
                found.generated.setdefault(place[0], set()).add(place[1])
            continue
        for file, around in before:
            _add_names(found.defined, file, around)
            _add_names(found.inherited, file, f"{around}.{name}")
    return found


def _add_names(where: dict[str, set[str]], path: str, *names: str) -> None:
    where.setdefault(path, set()).update(name for name in names if name)


def _class_and_bases(loaded_task: LoadedTask, path: str, name: str) -> list[DefinitionKey]:
    """A class and its bases, nearest first, as far as files of the tests define them."""
    found: list[DefinitionKey] = []
    todo = [(path, name)]
    while todo:
        place = todo.pop(0)
        node = None if place in found else _class(loaded_task, *place)
        if node is not None:
            found.append(place)
            words = [
                each for base in node.bases for each in ast.walk(base) if isinstance(each, ast.Name | ast.Attribute)
            ]
            todo = [where for word in words for where in _places(loaded_task, place[0], ast.unparse(word))] + todo
    return found


def _places(loaded_task: LoadedTask, path: str, name: str, depth: int = 0) -> Iterator[DefinitionKey]:
    """Where a name that a file uses is defined as a class."""
    if _class(loaded_task, path, name) is not None:
        yield path, name
        return
    module = _module(loaded_task, path)
    for node in ast.walk(module) if module and depth < _DEEPEST else ():
        if isinstance(node, ast.ImportFrom):
            head, _, rest = name.partition(".")
            for alias in node.names:
                if alias.name == "*" or (alias.asname or alias.name) == head:
                    meant = head if alias.name == "*" else alias.name
                    for file in _files(loaded_task, path, node.module or "", node.level):
                        yield from _places(loaded_task, file, f"{meant}.{rest}".rstrip("."), depth + 1)
                    if alias.name != "*" and rest:
                        inner = f"{node.module}.{meant}" if node.module else meant
                        for file in _files(loaded_task, path, inner, node.level):
                            yield from _places(loaded_task, file, rest, depth + 1)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name
                if name.startswith(f"{bound}."):
                    for file in _files(loaded_task, path, alias.name, 0):
                        yield from _places(loaded_task, file, name.removeprefix(f"{bound}."), depth + 1)


def _files(loaded_task: LoadedTask, path: str, module: str, level: int) -> list[str]:
    """Files of the tests that an import in this file can mean."""
    above = list(PurePosixPath(path).parents)
    roots = above[level - 1 : level] if level else above
    tail = module.replace(".", "/")
    found = []
    for root in roots:
        for end in (f"{tail}.py", f"{tail}/__init__.py") if tail else ("__init__.py",):
            file = (root / end).as_posix()
            if file in loaded_task.start.files and _is_of_tests(loaded_task, file):
                found.append(file)
    return found


def _is_of_tests(loaded_task: LoadedTask, path: str) -> bool:
    task = loaded_task.task
    return is_under(path, task.test_paths) or not is_under(path, task.source_paths)


def _class(loaded_task: LoadedTask, path: str, name: str) -> ast.ClassDef | None:
    module = _module(loaded_task, path)
    return _classes(module).get(name) if module else None


def _module(loaded_task: LoadedTask, path: str) -> ast.Module | None:
    content = loaded_task.start.files.get(path)
    return None if content is None else _parsed(content)


@functools.lru_cache(maxsize=64)
def _parsed(content: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(decode_source(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=64)
def _classes(module: ast.Module) -> dict[str, ast.ClassDef]:
    """The classes of a module by their dotted names, also those that a condition guards."""
    found: dict[str, ast.ClassDef] = {}
    todo: list[tuple[str, ast.AST]] = [("", module)]
    while todo:
        prefix, around = todo.pop()
        for node in ast.iter_child_nodes(around):
            if isinstance(node, ast.ClassDef):
                found[prefix + node.name] = node
                todo.append((f"{prefix}{node.name}.", node))
            elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
                todo.append((prefix, node))
    return found


def _members(loaded_task: LoadedTask, path: str, name: str) -> frozenset[str]:
    """What the body of a class binds, or of the module where no class is named."""
    module = _module(loaded_task, path)
    node = _classes(module).get(name) if module and name else module
    return _bound(node) if node else frozenset()


@functools.lru_cache(maxsize=256)
def _bound(around: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    todo: list[ast.AST] = [around]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                todo.append(node)
    return frozenset(found)
