"""Twins of inherited tests: the changed method is written into the class that inherits it, and into no other."""

import ast
import builtins
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree
from gametape.verify.twins.candidates import candidate_twins
from gametape.verify.twins.parsed_tests import Function, bound_names, import_bindings, names_in
from gametape.verify.twins.source_edit import SourceEdit, SourceText, Twin, apply_twins

ParsedText = tuple[SourceText, ast.Module]


@dataclass(frozen=True)
class MethodDefinition:
    """Where a method is written."""

    file: str
    path: str
    owner: ast.ClassDef
    node: Function


def override_twins(
    parsed: ParsedText,
    heir: ast.ClassDef,
    function: str,
    there: ParsedText,
    defined: MethodDefinition,
    made: Sequence[Twin],
    same_file: bool,
) -> list[Twin]:
    """Each twin of a method as an override at the end of the class that inherits it."""
    imports = [] if same_file else _imports(parsed[1], there[1], defined.node)
    node = defined.node
    if imports is None or heir.body[0].lineno == heir.lineno or heir.body[0].col_offset != node.col_offset:
        return []
    if same_file and heir.lineno < defined.owner.lineno:
        return []
    text, source = parsed[0], there[0]
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    start, end = source.line_span(first, node.end_lineno or first)
    _, place = text.line_span(1, heir.end_lineno or heir.lineno)
    blank = "\n" if text.source[:place].endswith("\n") else "\n\n"
    body = source.start(node.body[0])
    twins = []
    for twin in made:
        if any(edit.start < start or edit.end > end for edit in twin.edits) or not source.is_first_on_line(
            node.body[0]
        ):
            continue
        column = " " * node.body[0].col_offset
        added = [SourceEdit(body, body, "".join(f"{line}\n{column}" for line in imports))] if imports else []
        moved = [SourceEdit(e.start - start, e.end - start, e.text) for e in (*added, *twin.edits)]
        new = apply_twins(source.source[start:end], [Twin(function, twin.kind, None, tuple(moved))])
        twins.append(Twin(function, twin.kind, None, (SourceEdit(place, place, blank + new.rstrip("\n") + "\n"),)))
    return twins


def _imports(here: ast.Module, there: ast.Module, node: Function) -> list[str] | None:
    """The imports that the method needs besides those of the file it goes to; None if it needs more than imports."""
    known, given = _imported(here), _imported(there)
    builtin = set(vars(builtins)) - bound_names(there)
    free = set(names_in(node)) - bound_names(node) - builtin
    lines = []
    for name in sorted(free):
        if name not in given or given[name][0] is None:
            return None
        if known.get(name) != given[name]:
            module, original = given[name]
            plain = f"import {original} as {name}" if original != name else f"import {name}"
            lines.append(f"from {module} {plain}" if module else plain)
    return lines


def _imported(tree: ast.Module) -> dict[str, tuple[str | None, str]]:
    """The names a file imports: the module each is from, None for a relative one, and its name there."""
    found: dict[str, tuple[str | None, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({local: ("", origin) for local, origin in import_bindings(node).items()})
        elif isinstance(node, ast.ImportFrom):
            module = None if node.level else node.module
            found.update({alias.asname or alias.name: (module, alias.name) for alias in node.names})
    return found


FunctionKey = tuple[str, str]
"""The file and the function of a test id, without its parameters."""

_LONGEST_LINEAGE = 8


def split_test_id(test: str) -> FunctionKey:
    file, _, rest = test.partition("::")
    return file, rest.partition("[")[0]


def twins_of_suite(suite: SourceTree, tests: Sequence[str]) -> dict[FunctionKey, list[Twin]]:
    """The candidates for every test function that one of these ids belongs to."""
    reader = _Reader(suite)
    places = list(dict.fromkeys(map(split_test_id, tests)))
    found: dict[FunctionKey, list[Twin]] = {each: [] for each in places}
    for file in dict.fromkeys(file for file, _ in places):
        for twin in reader.twins(file, frozenset(function for where, function in places if where == file)):
            found[file, twin.function].append(twin)
    for file, function in places:
        if not found[file, function]:
            found[file, function] = reader.inherited(file, function)
    return found


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
        self._suite = suite
        self._parsed: dict[str, tuple[SourceText, ast.Module] | None] = {}
        self._inheritable: dict[str, list[Twin]] = {}

    def _parse(self, file: str) -> tuple[SourceText, ast.Module] | None:
        if file not in self._parsed:
            source = plain_text_of(self._suite, file)
            try:
                self._parsed[file] = (SourceText(source), ast.parse(source)) if source is not None else None
            except (SyntaxError, ValueError):
                self._parsed[file] = None
        return self._parsed[file]

    def twins(self, file: str, functions: frozenset[str] | None) -> list[Twin]:
        parsed = self._parse(file)
        if parsed is None:
            return []
        text, tree = parsed
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {"." * node.level + (node.module or "") for node in imports}
        sources = {name: plain_text_of(self._suite, found) for name in names if (found := self._module(file, name))}
        helpers = {name: source for name, source in sources.items() if source is not None}
        return candidate_twins(text.source, functions, helpers)

    def _module(self, file: str, name: str) -> str | None:
        """The file of the suite that an import names."""
        here = posixpath.dirname(file)
        dots = len(name) - len(name.lstrip("."))
        below = name.lstrip(".").replace(".", "/")
        roots = [posixpath.join(here, *[".."] * (dots - 1))] if dots else ["", here, posixpath.dirname(here)]
        for root in roots:
            stem = posixpath.normpath(posixpath.join(root, below))
            for path in (f"{stem}.py", posixpath.normpath(f"{stem}/__init__.py")):
                if path in self._suite and path != file:
                    return path
        return None

    def inherited(self, file: str, function: str) -> list[Twin]:
        """Twins of a method that a test class has from another class, as overrides in the class itself."""
        path, _, method = function.rpartition("::")
        heir = self._class(file, path)
        if heir is None:
            return []
        defined = self._method(file, heir, method, 0)
        parsed, there = self._parse(file), self._parse(defined.file) if defined else None
        if parsed is None or there is None or defined is None or defined.owner is heir:
            return []
        if defined.file not in self._inheritable:
            self._inheritable[defined.file] = self.twins(defined.file, None)
        name = f"{defined.path}::{method}"
        made = [twin for twin in self._inheritable[defined.file] if twin.function == name and not twin.case]
        return override_twins(parsed, heir, function, there, defined, made, file == defined.file)

    def _class(self, file: str, path: str) -> ast.ClassDef | None:
        parsed = self._parse(file)
        body = parsed[1].body if parsed else []
        found = None
        for name in path.split("::"):
            classes = [each for each in body if isinstance(each, ast.ClassDef) and each.name == name]
            if len(classes) != 1:
                return None
            found = classes[0]
            body = found.body
        return found

    def _method(self, file: str, owner: ast.ClassDef, method: str, depth: int) -> MethodDefinition | None:
        """Where a method is defined: here, or in the first base that has it."""
        for statement in owner.body:
            if isinstance(statement, Function) and statement.name == method:
                return MethodDefinition(file, owner.name, owner, statement)
        if depth > _LONGEST_LINEAGE:
            return None
        for base in owner.bases:
            where = self._base(file, base)
            found = self._method(*where, method, depth + 1) if where else None
            if found:
                return found
        return None

    def _base(self, file: str, base: ast.expr) -> tuple[str, ast.ClassDef] | None:
        """The file and the definition of a base class, where the suite has it."""
        parsed = self._parse(file)
        if parsed is None:
            return None
        if isinstance(base, ast.Name) and (found := self._class(file, base.id)):
            return file, found
        for node in ast.walk(parsed[1]):
            if not isinstance(node, ast.ImportFrom):
                continue
            for local, origin in import_bindings(node).items():
                module = "." * node.level + (node.module or "")
                name = origin.rpartition(".")[2]
                if isinstance(base, ast.Name) and base.id == local:
                    where = self._module(file, module)
                elif isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name) and base.value.id == local:
                    where, name = self._module(file, origin), base.attr
                else:
                    continue
                found = self._class(where, name) if where else None
                if where and found:
                    return where, found
        return None
