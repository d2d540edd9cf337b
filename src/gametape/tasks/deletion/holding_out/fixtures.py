"""The fixtures with parameters that a test asks for: they multiply its ids from afar."""

import ast
import posixpath
from collections.abc import Collection, Iterator

from gametape.tasks.deletion.holding_out.testfile import FunctionNode, TestFile
from gametape.tasks.deletion.holding_out.testfiles import TestFiles

Parametrised = tuple[str, FunctionNode, ast.Call]
"""A fixture: its file, its function and the decorator with the parameters."""


def fixtures_of(
    files: TestFiles, function: str, path: str, node: FunctionNode, given: Collection[str]
) -> list[Parametrised]:
    """Those a test needs, itself or through other fixtures. `given` are arguments that are set in another way."""
    test_path = function.partition("::")[0]
    places = [*_places(files, test_path, function), *_places(files, path, function)]
    wanted = [*_asked(node), *(name for file, prefix in places for name in _automatic(file, prefix))]
    for file, prefix in places:
        owner = file.classes.get(prefix.removesuffix("::"), [])
        wanted += [name for each in owner for name in _used(each.decorator_list)]
    found: dict[str, Parametrised] = {}
    seen = set(given)
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for file, prefix in places:
            fixture = next(iter(file.functions.get(prefix + name, [])), None)
            call = _decorator(fixture) if fixture else None
            if fixture and call:
                wanted += _asked(fixture)
                if isinstance(call, ast.Call) and any(each.arg == "params" for each in call.keywords):
                    found[name] = file.path, fixture, call
                break
    return [*found.values()]


def _places(files: TestFiles, path: str, function: str) -> Iterator[tuple[TestFile, str]]:
    """Where fixtures of a test are looked for, the nearest first."""
    name = function.partition("::")[2]
    if path in files.parsed:
        owner = name.rpartition("::")[0]
        for file, qualname, _ in files.lineage(path, owner) if owner else []:
            yield file, f"{qualname}::"
        yield files.parsed[path], ""
    directory = posixpath.dirname(path)
    while True:
        conftest = posixpath.join(directory, "conftest.py")
        if conftest in files.parsed:
            yield files.parsed[conftest], ""
        if not directory:
            return
        directory = posixpath.dirname(directory)


def _decorator(node: FunctionNode) -> ast.expr | None:
    for each in node.decorator_list:
        target = each.func if isinstance(each, ast.Call) else each
        if getattr(target, "attr", getattr(target, "id", "")) in {"fixture", "yield_fixture"}:
            return each
    return None


def _asked(node: FunctionNode) -> list[str]:
    return [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)] + _used(
        node.decorator_list
    )


def _used(decorators: list[ast.expr]) -> list[str]:
    """What `usefixtures` names."""
    calls = [each for each in decorators if isinstance(each, ast.Call) and _is_usefixtures(each)]
    values = [each.value for call in calls for each in call.args if isinstance(each, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


def _is_usefixtures(call: ast.Call) -> bool:
    return getattr(call.func, "attr", getattr(call.func, "id", "")) == "usefixtures"


def _automatic(file: TestFile, prefix: str) -> Iterator[str]:
    for qualname, nodes in file.functions.items():
        call = _decorator(nodes[0]) if qualname.rpartition("::")[0] == prefix.removesuffix("::") else None
        if isinstance(call, ast.Call) and any(each.arg == "autouse" for each in call.keywords):
            yield nodes[0].name
