"""The parametrisation of a test: its own decorators, those of its class, and the parameters of its fixtures."""

import ast
import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gametape.syntax.definitions import Definition, FunctionNode, last_name
from gametape.syntax.pytest_ids import ParamId, param_ids
from gametape.syntax.suite_files import TestFile, TestFiles

ParametrizedFixture = tuple[str, FunctionNode, ast.Call]
"""A fixture: its file, its function and the decorator with the parameters."""


def parametrized_fixtures(
    files: TestFiles, function: str, path: str, node: FunctionNode, given: Collection[str]
) -> list[ParametrizedFixture]:
    """The parametrised fixtures that a test needs, itself or through others; `given` arguments are set otherwise."""
    test_path = function.partition("::")[0]
    scopes = [*_places(files, test_path, function), *_places(files, path, function)]
    wanted = [*_asked(node), *(name for file, prefix in scopes for name in _automatic(file, prefix))]
    for file, prefix in scopes:
        owner = file.classes.get(prefix.removesuffix("::"), [])
        wanted += [name for owner_class in owner for name in _used(owner_class.decorator_list)]
    fixtures: dict[str, ParametrizedFixture] = {}
    seen = set(given)
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for file, prefix in scopes:
            fixture = next(iter(file.functions.get(prefix + name, [])), None)
            call = _decorator(fixture) if fixture else None
            if fixture and call:
                wanted += _asked(fixture)
                if isinstance(call, ast.Call) and any(word.arg == "params" for word in call.keywords):
                    fixtures[name] = file.path, fixture, call
                break
    return [*fixtures.values()]


def _places(files: TestFiles, path: str, function: str) -> Iterator[tuple[TestFile, str]]:
    """The files, with class prefixes, in which fixtures of a test are looked up, the nearest first."""
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
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if last_name(target) in {"fixture", "yield_fixture"}:
            return decorator
    return None


def _asked(node: FunctionNode) -> list[str]:
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)] + _used(
        node.decorator_list
    )


def _used(decorators: list[ast.expr]) -> list[str]:
    """The fixtures that `usefixtures` names."""
    calls = [call for call in decorators if isinstance(call, ast.Call) and last_name(call.func) == "usefixtures"]
    values = [argument.value for call in calls for argument in call.args if isinstance(argument, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


def _automatic(file: TestFile, prefix: str) -> Iterator[str]:
    for qualname, nodes in file.functions.items():
        call = _decorator(nodes[0]) if qualname.rpartition("::")[0] == prefix.removesuffix("::") else None
        if isinstance(call, ast.Call) and any(word.arg == "autouse" for word in call.keywords):
            yield nodes[0].name


RowsNode = ast.List | ast.Tuple


@dataclass(frozen=True)
class RowSource:
    """The literal that holds rows, and its name if it is a constant."""

    file: TestFile
    node: RowsNode
    name: str


@dataclass(frozen=True)
class ParamAxis:
    """One decorator with rows."""

    file: TestFile
    call: ast.Call
    owner: Definition
    table: RowSource | None
    """None where the rows cannot be read."""
    rows: tuple[ParamId, ...]
    ordered: bool
    """Whether its rows make ids in the order in which they stand."""


@dataclass(frozen=True)
class ParamAxes:
    """The axes of one test function: its own, in the order of their parts in its ids, and those of fixtures, whose
    order is not known."""

    own: tuple[ParamAxis, ...]
    fixtures: tuple[ParamAxis, ...]


def read_param_axes(files: TestFiles, function: str) -> ParamAxes | None:
    """The axes of a test, named by its id without parameters; None where it is not known what the test is."""
    definitions = files.definitions(function)
    if not definitions or definitions[0][1].lineno in files.parsed[definitions[0][0]].repeated:
        return None
    path, node = definitions[0]
    own = tuple(_own(files, function, path, node))
    given = {name for axis in own for name in argument_names(axis.call)}
    fixtures = parametrized_fixtures(files, function, path, node, given)
    return ParamAxes(own, tuple(_axis(files, files.parsed[home], owner, call) for home, owner, call in fixtures))


def _own(files: TestFiles, function: str, path: str, node: FunctionNode) -> Iterator[ParamAxis]:
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Call) and last_name(decorator.func) == "parametrize":
            yield _axis(files, files.parsed[path], node, decorator)
    home, _, name = function.partition("::")
    if "::" in name:
        for file, _, owner in files.lineage(home, name.rpartition("::")[0]):
            for decorator in reversed(owner.decorator_list):
                if isinstance(decorator, ast.Call) and last_name(decorator.func) == "parametrize":
                    yield _axis(files, file, owner, decorator)


def _axis(files: TestFiles, file: TestFile, owner: Definition, call: ast.Call) -> ParamAxis:
    given = {word.arg: word.value for word in call.keywords}
    is_fixture = last_name(call.func) == "fixture"
    values = given.get("params" if is_fixture else "argvalues")
    if values is None and not is_fixture and len(call.args) > 1:
        values = call.args[1]
    scope = file.qualnames.get(owner.lineno, "").rpartition("::")[0]
    table = _table(files, file, values, scope) if None not in given and len(call.args) <= 2 else None
    names = [owner.name] if is_fixture else argument_names(call)
    rows = param_ids(names, table.node.elts, given.get("ids")) if table and names else ()
    ordered = not given.keys() & {"scope", "indirect"} and not is_fixture
    return ParamAxis(file, call, owner, table if rows else None, tuple(rows), ordered)


def _table(files: TestFiles, file: TestFile, values: ast.expr | None, scope: str) -> RowSource | None:
    """The literal that a decorator names, directly or as a constant."""
    name = ""
    if isinstance(values, ast.Name):
        there = files.constant(file, values.id, scope)
        if there is None or len(there[0].constants[there[1]]) != 1:
            return None
        file, name = there
        values = file.constants[name][0]
    if not isinstance(values, RowsNode) or any(isinstance(row, ast.Starred) for row in values.elts):
        return None
    return RowSource(file, values, name.rpartition("::")[2]) if values.elts and _is_enclosed(file, values) else None


def argument_names(call: ast.Call) -> list[str]:
    """The arguments that a parametrisation sets."""
    given = {word.arg: word.value for word in call.keywords}
    node = call.args[0] if call.args else given.get("argnames")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return []


def _is_enclosed(file: TestFile, node: RowsNode) -> bool:
    """Whether brackets of its own hold the rows together."""
    start, end = file.text.start(node), file.text.end(node)
    inside = start < file.text.start(node.elts[0]) and file.text.end(node.elts[-1]) < end
    return inside and file.text.source[start] in "[(" and file.text.source[end - 1] in "])"
