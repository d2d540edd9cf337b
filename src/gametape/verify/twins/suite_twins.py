"""Candidate twins for the tests of a whole suite, inherited tests included.

The twin of an inherited test is written into the class that inherits it, as an override: other heirs keep the test.
"""

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree
from gametape.syntax.definitions import FunctionNode, first_line
from gametape.syntax.names import bound_names, imports_in, names_in
from gametape.syntax.pytest_ids import split_test_id
from gametape.syntax.source_text import SourceEdit, apply_edits
from gametape.syntax.suite_files import TestFile, TestFiles
from gametape.verify.twins.candidates import candidate_twins
from gametape.verify.twins.twin import Twin


@dataclass(frozen=True)
class MethodDefinition:
    """Where a method is written."""

    file: TestFile
    path: str
    """The class, as in a test id."""
    owner: ast.ClassDef
    node: FunctionNode


def override_twins(
    file: TestFile, heir: ast.ClassDef, function: str, defined: MethodDefinition, inherited: Sequence[Twin]
) -> list[Twin]:
    """Each twin of an inherited method as an override at the end of the class that inherits it."""
    node = defined.node
    same_file = file is defined.file
    imports = [] if same_file else _missing_imports(file.module, defined.file.module, node)
    if imports is None or heir.body[0].lineno == heir.lineno or heir.body[0].col_offset != node.col_offset:
        return []
    if same_file and heir.lineno < defined.owner.lineno:
        return []
    text, source = file.text, defined.file.text
    if not source.is_first_on_line(node.body[0]):
        return []
    first = first_line(node)
    start, end = source.line_span(first, node.end_lineno or first)
    _, position = text.line_span(1, heir.end_lineno or heir.lineno)
    blank = "\n" if text.source[:position].endswith("\n") else "\n\n"
    body, column = source.start(node.body[0]), " " * node.body[0].col_offset
    added = [SourceEdit(body, body, "".join(f"{line}\n{column}" for line in imports))] if imports else []
    twins = []
    for twin in inherited:
        if all(start <= edit.start and edit.end <= end for edit in twin.edits):
            new = apply_edits(source.source[start:end], [edit.moved(-start) for edit in (*added, *twin.edits)])
            override = SourceEdit(position, position, blank + new.rstrip("\n") + "\n")
            twins.append(Twin(function, twin.kind, (override,)))
    return twins


def _missing_imports(here: ast.Module, there: ast.Module, node: FunctionNode) -> list[str] | None:
    """The imports that a method needs besides those of the file it goes to; None if it needs more than imports."""
    known, given = ({imported.local: imported for imported in imports_in(tree)} for tree in (here, there))
    builtin = set(vars(builtins)) - bound_names(there, inner_scopes=True)
    lines = []
    for name in sorted(set(names_in(node)) - bound_names(node, inner_scopes=True) - builtin):
        if name not in given or given[name].is_relative:
            return None
        if name not in known or known[name].origin != given[name].origin:
            origin = given[name].name or given[name].origin
            plain = f"import {origin} as {name}" if origin != name else f"import {name}"
            lines.append(f"from {given[name].module} {plain}" if given[name].name else plain)
    return lines


FunctionKey = tuple[str, str]
"""The file and the function of a test id, without its parameters."""


def twins_of_suite(suite: SourceTree, tests: Sequence[str]) -> dict[FunctionKey, list[Twin]]:
    """The candidates for every test function that one of these ids belongs to."""
    reader = _Reader(suite)
    functions = list(dict.fromkeys(map(split_test_id, tests)))
    by_function: dict[FunctionKey, list[Twin]] = {function: [] for function in functions}
    for file in dict.fromkeys(file for file, _ in functions):
        for twin in reader.twins(file, frozenset(function for where, function in functions if where == file)):
            by_function[file, twin.function].append(twin)
    for file, function in functions:
        if not by_function[file, function]:
            by_function[file, function] = reader.inherited(file, function)
    return by_function


def plain_text_of(suite: SourceTree, file: str) -> str | None:
    """A file's text, where it is plain UTF-8, so that characters and bytes tell the same story."""
    try:
        text = suite.files[file].decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return None
    return None if text.startswith("\ufeff") or "\x0c" in text else text


class _Reader:
    """Reads the files of one suite, each once."""

    def __init__(self, suite: SourceTree) -> None:
        plain = {path: content for path, content in suite.files.items() if plain_text_of(suite, path) is not None}
        self._files = TestFiles(plain)
        self._inheritable: dict[str, list[Twin]] = {}

    def twins(self, path: str, functions: frozenset[str] | None) -> list[Twin]:
        file = self._files.parsed.get(path)
        if file is None:
            return []
        names = {imported.module for imported in imports_in(file.module) if imported.name}
        helpers = {name: modules[0].text.source for name in names if (modules := self._files.modules(path, name))}
        return candidate_twins(file.text.source, functions, helpers)

    def inherited(self, path: str, function: str) -> list[Twin]:
        """Twins of a method that a test class has from another class, as overrides in the class itself."""
        owner, _, method = function.rpartition("::")
        file = self._files.parsed.get(path)
        if file is None or len(file.classes.get(owner, [])) != 1:
            return []
        heir, *bases = self._files.lineage(path, owner)
        defined = next((inherited_method for base in bases if (inherited_method := _method(*base, method))), None)
        if defined is None or _method(*heir, method):
            return []
        if defined.file.path not in self._inheritable:
            self._inheritable[defined.file.path] = self.twins(defined.file.path, None)
        name = f"{defined.path}::{method}"
        twins = [twin for twin in self._inheritable[defined.file.path] if twin.function == name and not twin.cases]
        return override_twins(file, heir[2], function, defined, twins)


def _method(file: TestFile, path: str, owner: ast.ClassDef, name: str) -> MethodDefinition | None:
    nodes = (node for node in owner.body if isinstance(node, FunctionNode) and node.name == name)
    return next((MethodDefinition(file, path, owner, node) for node in nodes), None)
