"""Find what can be removed from a test suite so that some of its ids disappear and all others stay the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gametape.syntax.definitions import FunctionNode
from gametape.syntax.suite_files import SourcePosition, TestFiles
from gametape.tasks.mining.held_out.param_tables import ParamTable, read_param_tables


@dataclass(frozen=True, order=True)
class SuiteCut:
    """One removal from a test file: a definition, a row of a table (`row`), or the whole file (line 0)."""

    path: str
    line: int = 0
    column: int = 0
    row: int | None = None


@dataclass(frozen=True)
class RemovableTests:
    """The ids that disappear when these cuts are made: all of them, and no others. Units may overlap."""

    ids: frozenset[str]
    cuts: frozenset[SuiteCut]


@dataclass(frozen=True, eq=False)
class TestSuite:
    """A project's tests, read once for all tasks, and everything that can be removed from them."""

    __test__ = False

    files: TestFiles
    ids: tuple[str, ...]
    tables: Mapping[SourcePosition, ParamTable]
    units: tuple[RemovableTests, ...]


def read_test_suite(sources: Mapping[str, bytes], ids: Sequence[str]) -> TestSuite:
    """`sources` are the test files with `conftest.py` and helpers; `ids` are all collected ids, in that order."""
    files = TestFiles(sources)
    tables = read_param_tables(files, ids)
    functions = [*_functions(files, ids)]
    classes = [*_classes(files, ids)]
    rows = [*_rows(tables, frozenset(cut for unit in functions for cut in unit.cuts))]
    finer = [*functions, *classes, *rows]
    units = [*finer, *_files(files, ids, frozenset().union(*(unit.ids for unit in finer)))]
    unique = {unit.ids: unit for unit in reversed(units)}
    return TestSuite(files, tuple(ids), {table.position: table for table in tables}, tuple(reversed(unique.values())))


@dataclass
class _Bundle:
    """Functions that can only be removed together, because one would take the other's place."""

    ids: set[str] = field(default_factory=set)
    nodes: dict[SuiteCut, FunctionNode] = field(default_factory=dict)


def _functions(files: TestFiles, ids: Sequence[str]) -> Iterator[RemovableTests]:
    """Test functions, each with all its ids, in every class that inherits it, and with all that it overrides."""
    by_cut: dict[SuiteCut, _Bundle] = {}
    by_name: dict[str, list[str]] = {}
    for test in ids:
        by_name.setdefault(test.partition("[")[0], []).append(test)
    for name, tests in by_name.items():
        cuts = {SuiteCut(path, node.lineno, node.col_offset): node for path, node in files.definitions(name)}
        if not cuts:
            continue
        bundle = _Bundle(set(tests), cuts)
        for other in {id(by_cut[cut]): by_cut[cut] for cut in cuts if cut in by_cut}.values():
            bundle.ids |= other.ids
            bundle.nodes |= other.nodes
        by_cut |= dict.fromkeys(bundle.nodes, bundle)
    for bundle in {id(bundle): bundle for bundle in by_cut.values()}.values():
        paths = {cut.path for cut in bundle.nodes}
        own = {path: [node for cut, node in bundle.nodes.items() if cut.path == path] for path in paths}
        if not any(files.used_elsewhere(path, node.name, nodes) for path, nodes in own.items() for node in nodes[:1]):
            yield RemovableTests(frozenset(bundle.ids), frozenset(bundle.nodes))


def _classes(files: TestFiles, ids: Sequence[str]) -> Iterator[RemovableTests]:
    """Classes that inherit tests defined elsewhere: removing the class removes its ids of them."""
    members: dict[tuple[str, str], list[str]] = {}
    for test in ids:
        path, _, rest = test.partition("::")
        owners = rest.partition("[")[0].split("::")[:-1]
        for depth in range(1, len(owners) + 1):
            members.setdefault((path, "::".join(owners[:depth])), []).append(test)
    for (path, name), tests in members.items():
        nodes = files.parsed[path].classes.get(name, []) if path in files.parsed else []
        if len(nodes) != 1 or files.used_elsewhere(path, nodes[0].name, nodes):
            continue
        first, last = nodes[0].lineno, nodes[0].end_lineno or 0
        functions = dict.fromkeys(test.partition("[")[0] for test in tests)
        definitions = [files.definitions(function) for function in functions]
        if not all(
            found_at and all(at == path and first <= node.lineno <= last for at, node in found_at)
            for found_at in definitions
        ):
            yield RemovableTests(frozenset(tests), frozenset([SuiteCut(path, first, nodes[0].col_offset)]))


def _rows(tables: Iterable[ParamTable], removable: frozenset[SuiteCut]) -> Iterator[RemovableTests]:
    """Rows of tables. All rows of a table can be removed only if its functions can."""
    for table in tables:
        owners = [SuiteCut(use.path, use.owner.lineno, use.owner.col_offset) for use in table.uses]
        first = 0 if all(owner in removable for owner in owners) else 1
        for row, ids in enumerate(table.ids):
            if row >= first and ids:
                yield RemovableTests(ids, frozenset([SuiteCut(*table.position, row)]))


def _files(files: TestFiles, ids: Sequence[str], covered: frozenset[str]) -> Iterator[RemovableTests]:
    """Whole files, where some of their ids are in no smaller unit."""
    members: dict[str, list[str]] = {}
    for test in ids:
        members.setdefault(test.partition("::")[0], []).append(test)
    for path, tests in members.items():
        if path in files.sources and path not in files.imported and not covered.issuperset(tests):
            yield RemovableTests(frozenset(tests), frozenset([SuiteCut(path)]))
