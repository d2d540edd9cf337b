"""What multiplies the ids of a test: its parametrisations, those of its class, and the parameters of its fixtures."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.tasks.deletion.holding_out.fixtures import fixtures_of
from gametape.tasks.deletion.holding_out.row_ids import RowId, row_ids
from gametape.tasks.deletion.holding_out.testfile import Definition, FunctionNode, TestFile
from gametape.tasks.deletion.holding_out.testfiles import TestFiles

Rows = ast.List | ast.Tuple


@dataclass(frozen=True)
class Source:
    """Where rows stand: a literal, under a name if it is a constant."""

    file: TestFile
    node: Rows
    name: str


@dataclass(frozen=True)
class Axis:
    """One decorator with rows."""

    file: TestFile
    call: ast.Call
    owner: Definition
    table: Source | None
    """None where the rows cannot be read."""
    rows: tuple[RowId, ...]
    ordered: bool
    """Whether its rows make ids in the order in which they stand."""


@dataclass(frozen=True)
class Axes:
    """Of one test function: its own, as their parts stand in its ids, and those of fixtures, of which that is not
    known."""

    own: tuple[Axis, ...]
    fixtures: tuple[Axis, ...]


def axes_of(files: TestFiles, function: str) -> Axes | None:
    """The axes of a test, named by its id without parameters; None where it is not known what the test is."""
    found = files.definitions(function)
    if not found or found[0][1].lineno in files.parsed[found[0][0]].repeated:
        return None
    path, node = found[0]
    own = tuple(_own(files, function, path, node))
    given = {name for axis in own for name in argument_names(axis.call)}
    fixtures = fixtures_of(files, function, path, node, given)
    return Axes(own, tuple(_axis(files, files.parsed[home], owner, call) for home, owner, call in fixtures))


def _own(files: TestFiles, function: str, path: str, node: FunctionNode) -> Iterator[Axis]:
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Call) and _called(decorator) == "parametrize":
            yield _axis(files, files.parsed[path], node, decorator)
    home, _, name = function.partition("::")
    if "::" in name:
        for file, _, owner in files.lineage(home, name.rpartition("::")[0]):
            for decorator in reversed(owner.decorator_list):
                if isinstance(decorator, ast.Call) and _called(decorator) == "parametrize":
                    yield _axis(files, file, owner, decorator)


def _axis(files: TestFiles, file: TestFile, owner: Definition, call: ast.Call) -> Axis:
    given = {each.arg: each.value for each in call.keywords}
    is_fixture = _called(call) == "fixture"
    values = given.get("params" if is_fixture else "argvalues")
    if values is None and not is_fixture and len(call.args) > 1:
        values = call.args[1]
    scope = file.qualnames.get(owner.lineno, "").rpartition("::")[0]
    table = _table(files, file, values, scope) if None not in given and len(call.args) <= 2 else None
    names = [owner.name] if is_fixture else argument_names(call)
    rows = row_ids(names, table.node.elts, given.get("ids")) if table and names else ()
    ordered = not given.keys() & {"scope", "indirect"} and not is_fixture
    return Axis(file, call, owner, table if rows else None, tuple(rows), ordered)


def _table(files: TestFiles, file: TestFile, values: ast.expr | None, scope: str) -> Source | None:
    """The literal that a decorator names, directly or as a constant."""
    name = ""
    if isinstance(values, ast.Name):
        there = files.constant(file, values.id, scope)
        if there is None or len(there[0].constants[there[1]]) != 1:
            return None
        file, name = there
        values = file.constants[name][0]
    if not isinstance(values, Rows) or any(isinstance(row, ast.Starred) for row in values.elts):
        return None
    return Source(file, values, name.rpartition("::")[2]) if values.elts and _is_enclosed(file, values) else None


def argument_names(call: ast.Call) -> list[str]:
    """The arguments that a parametrisation sets."""
    given = {each.arg: each.value for each in call.keywords}
    node = call.args[0] if call.args else given.get("argnames")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return []


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_enclosed(file: TestFile, node: Rows) -> bool:
    """Whether brackets of its own hold the rows together."""
    start, end = file.text.start(node), file.text.end(node)
    inside = start < file.text.start(node.elts[0]) and file.text.end(node.elts[-1]) < end
    return inside and file.text.source[start] in "[(" and file.text.source[end - 1] in "])"
