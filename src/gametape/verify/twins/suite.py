"""The twins of a whole suite: test files that lean on each other for helpers and for inherited tests."""

import ast
import posixpath
from collections.abc import Sequence

from gametape.verify.tree import Tree
from gametape.verify.twins.candidates import candidates
from gametape.verify.twins.edit import Text, Twin
from gametape.verify.twins.inherited import Definition, overriding
from gametape.verify.twins.scope import Function, imported

Place = tuple[str, str]
"""The file and the function of a test id, without its parameters."""

_LONGEST_LINEAGE = 8


def place(test: str) -> Place:
    file, _, rest = test.partition("::")
    return file, rest.partition("[")[0]


def twins_of_suite(suite: Tree, tests: Sequence[str]) -> dict[Place, list[Twin]]:
    """The candidates for every test function that one of these ids belongs to."""
    reader = _Reader(suite)
    places = list(dict.fromkeys(map(place, tests)))
    found: dict[Place, list[Twin]] = {each: [] for each in places}
    for file in dict.fromkeys(file for file, _ in places):
        for twin in reader.twins(file, frozenset(function for where, function in places if where == file)):
            found[file, twin.function].append(twin)
    for file, function in places:
        if not found[file, function]:
            found[file, function] = reader.inherited(file, function)
    return found


def text_of(suite: Tree, file: str) -> str | None:
    """A file's text, where it is plain UTF-8, so that characters and bytes tell the same story."""
    try:
        text = suite.files[file].decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return None
    return None if text.startswith("\ufeff") or "\x0c" in text else text


class _Reader:
    """Reads the files of one suite, each once."""

    def __init__(self, suite: Tree) -> None:
        self._suite = suite
        self._parsed: dict[str, tuple[Text, ast.Module] | None] = {}
        self._inheritable: dict[str, list[Twin]] = {}

    def _parse(self, file: str) -> tuple[Text, ast.Module] | None:
        if file not in self._parsed:
            source = text_of(self._suite, file)
            try:
                self._parsed[file] = (Text(source), ast.parse(source)) if source is not None else None
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
        sources = {name: text_of(self._suite, found) for name in names if (found := self._module(file, name))}
        helpers = {name: source for name, source in sources.items() if source is not None}
        return candidates(text.source, functions, helpers)

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
        return overriding(parsed, heir, function, there, defined, made, file == defined.file)

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

    def _method(self, file: str, owner: ast.ClassDef, method: str, depth: int) -> Definition | None:
        """Where a method is defined: here, or in the first base that has it."""
        for statement in owner.body:
            if isinstance(statement, Function) and statement.name == method:
                return Definition(file, owner.name, owner, statement)
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
            for local, origin in imported(node).items():
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
