"""The test files of a project together: where each test id is defined, and what leans on what."""

import ast
import functools
import posixpath
from collections.abc import Iterable, Iterator, Mapping

from gametape.tasks.deletion.holding_out.testfile import Definition, FunctionNode, TestFile, first_line, parse

_LONGEST_WAY = 4
"""Imports that are followed to find out where a name is from."""


class _Parsed(Mapping[str, TestFile]):
    """The files that can be read, each parsed when it is first asked for."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._found: dict[str, TestFile | None] = {}

    def __getitem__(self, path: str) -> TestFile:
        if path not in self._found:
            self._found[path] = parse(path, self._sources[path]) if path in self._sources else None
        found = self._found[path]
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return (path for path in self._sources if path in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class TestFiles:
    """The test files of a project, with the helpers among them."""

    __test__ = False

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self.sources = sources
        self.parsed: Mapping[str, TestFile] = _Parsed(sources)
        self._stems: dict[str, list[str]] = {}
        for path in sources:
            stem = path.removesuffix(".py").removesuffix("/__init__").rsplit("/", 1)[-1]
            self._stems.setdefault(stem, []).append(path)

    def used_elsewhere(self, path: str, name: str, inside: Iterable[Definition] = ()) -> bool:
        """Whether a name of a file is used outside these definitions of its own, here or in another file."""
        spans = [(first_line(node), node.end_lineno or node.lineno) for node in inside]
        here = self.parsed[path].names.get(name, [])
        if any(not any(first <= line <= last for first, last in spans) for line in here):
            return True
        return any(name in other.foreign for other in self.parsed.values() if other.path != path)

    @functools.cached_property
    def imported(self) -> frozenset[str]:
        """Files that others import, by the last name of their module."""
        return frozenset(
            path
            for file in self.parsed.values()
            for word in file.modules
            for path in self._stems.get(word, [])
            if path != file.path
        )

    def definitions(self, test: str) -> list[tuple[str, FunctionNode]]:
        """Every function that a test id may come from, with its file: its class' own, and those it would inherit
        without. Empty where nothing is known."""
        path, _, rest = test.partition("::")
        *owners, name = rest.partition("[")[0].split("::")
        file = self.parsed.get(path)
        if file is None:
            return []
        if not owners:
            homes = [(home, inner) for home, inner in self._homes(file, name) if inner in home.functions]
            return [(home.path, node) for home, inner in homes[:1] for node in home.functions[inner]]
        lineage = self.lineage(path, "::".join(owners))
        if lineage:
            methods = [(home.path, home.functions.get(f"{owner}::{name}", [])) for home, owner, _ in lineage]
        else:
            methods = [(home.path, home.made.get(name, [])) for home, _ in self._homes(file, owners[0])]
        return [(home, node) for home, nodes in methods for node in nodes]

    def lineage(self, path: str, name: str) -> list[tuple[TestFile, str, ast.ClassDef]]:
        """A class and all it inherits from, as far as the test files know them."""
        found: list[tuple[TestFile, str, ast.ClassDef]] = []
        waiting: list[tuple[TestFile, str] | None] = [(self.parsed[path], name)]
        seen = set()
        while waiting:
            at = waiting.pop(0)
            if at is None or (at[0].path, at[1]) in seen:
                continue
            file, qualname = at
            seen.add((file.path, qualname))
            if qualname not in file.classes:
                outer, *inner = qualname.split("::")
                waiting += [(home, "::".join([there, *inner])) for home, there in self._homes(file, outer)[1:]]
                continue
            for node in file.classes[qualname]:
                found.append((file, qualname, node))
                waiting += [self._base(file, qualname, base) for base in node.bases]
        return found

    def _base(self, file: TestFile, heir: str, base: ast.expr) -> tuple[TestFile, str] | None:
        if isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name):
            beside = f"{heir.rpartition('::')[0]}::{base.id}"
            return file, beside if beside in file.classes else base.id
        if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            if base.value.id in file.classes:
                return file, f"{base.value.id}::{base.attr}"
            module = file.imports.get(base.value.id)
            there = self.module(file.path, *module) if module else None
            return (there, base.attr) if there else None
        return None

    def _homes(self, file: TestFile, name: str, depth: int = 0) -> list[tuple[TestFile, str]]:
        """Where a name may be from: this file, and those that it is imported from, under its name there."""
        found = [(file, name)]
        modules = [(origin, name) for origin in file.stars]
        if name in file.imports:
            modules.insert(0, file.imports[name])
        for origin, inner in modules if depth < _LONGEST_WAY else []:
            there = self.module(file.path, origin)
            if there and inner:
                found += self._homes(there, inner, depth + 1)
        return found

    def constant(self, file: TestFile, name: str, scope: str = "") -> tuple[TestFile, str] | None:
        """Where a name gets its value: in the class it is used in, at the top of the file, or where it is imported
        from."""
        homes = [*([(file, f"{scope}::{name}")] if scope else []), *self._homes(file, name)]
        return next(((home, inner) for home, inner in homes if inner in home.constants), None)

    def module(self, path: str, origin: str, name: str = "") -> TestFile | None:
        """The test file that an import names, seen from another one."""
        here = posixpath.dirname(path)
        dots = len(origin) - len(origin.lstrip("."))
        below = ".".join(filter(None, [origin.lstrip("."), name])).replace(".", "/")
        roots = [posixpath.join(here, *[".."] * (dots - 1))] if dots else [here, "", posixpath.dirname(here)]
        for root in roots:
            stem = posixpath.normpath(posixpath.join(root, below))
            for found in (f"{stem}.py", posixpath.normpath(f"{stem}/__init__.py")):
                if found in self.parsed and found != path:
                    return self.parsed[found]
        return None
