"""The test files of a project: what each defines, the names it uses, and where classes and names come from."""

import ast
import functools
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gametape.syntax.definitions import Definition, FunctionNode, first_line, statements
from gametape.syntax.names import imports_of
from gametape.syntax.pytest_ids import split_test_id
from gametape.syntax.source import parse
from gametape.syntax.source_text import SourceText

SourcePosition = tuple[str, int, int]
"""A position in a test file: path, line and column, as syntax trees count them."""


@dataclass(frozen=True, eq=False)
class TestFile:
    """One parsed file: its definitions by name (`A::B::test_c`), and the lines on which names are used."""

    __test__ = False

    path: str
    text: SourceText
    module: ast.Module
    functions: Mapping[str, list[FunctionNode]]
    classes: Mapping[str, list[ast.ClassDef]]
    made: Mapping[str, list[FunctionNode]]
    """Methods of classes that functions make, by their bare name: the names of their tests are made at run time."""
    constants: Mapping[str, list[ast.expr]]
    imports: Mapping[str, tuple[str, str]]
    """Names from other modules: the module, with its dots, and the name there; the name is empty for a module."""
    stars: Sequence[str]
    """The modules from which everything is imported."""
    modules: Set[str]
    """The words of all module names and names that are imported anywhere in it."""
    names: Mapping[str, list[int]]
    foreign: Mapping[str, list[int]]
    """What is imported from elsewhere, or an attribute of anything: these may mean a definition in another file."""

    @functools.cached_property
    def repeated(self) -> frozenset[int]:
        """The lines of functions that share their name with another one in the same place."""
        lists = (*self.functions.values(), *self.made.values())
        return frozenset(node.lineno for nodes in lists if len(nodes) > 1 for node in nodes)

    @functools.cached_property
    def qualnames(self) -> Mapping[int, str]:
        """The names of functions and classes, by the line of the definition."""
        functions = {node.lineno: name for name, nodes in self.functions.items() for node in nodes}
        return functions | {node.lineno: name for name, nodes in self.classes.items() for node in nodes}

    def position_of(self, node: ast.expr | ast.stmt) -> SourcePosition:
        return self.path, node.lineno, node.col_offset


@functools.lru_cache(maxsize=512)
def parse_suite_file(path: str, content: bytes) -> TestFile | None:
    """None for what is no plain Python text."""
    try:
        source = content.decode("utf-8")
        if source.startswith("\ufeff") or not path.endswith(".py"):
            return None
        module = parse(source)
    except (SyntaxError, ValueError):
        return None
    reader = _SuiteReader()
    reader.read(module.body, "")
    reader.use(module)
    return TestFile(
        path, SourceText(source), module, reader.functions, reader.classes, reader.made, reader.constants,
        reader.imports, reader.stars, reader.modules, reader.names, reader.foreign,
    )  # fmt: skip


@dataclass
class _SuiteReader:
    functions: dict[str, list[FunctionNode]] = field(default_factory=dict)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    made: dict[str, list[FunctionNode]] = field(default_factory=dict)
    constants: dict[str, list[ast.expr]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)
    names: dict[str, list[int]] = field(default_factory=dict)
    foreign: dict[str, list[int]] = field(default_factory=dict)

    def read(self, body: list[ast.stmt], prefix: str) -> None:
        for node in statements(body):
            if isinstance(node, FunctionNode):
                self.functions.setdefault(prefix + node.name, []).append(node)
                self._read_factory(node)
            elif isinstance(node, ast.ClassDef):
                self.classes.setdefault(prefix + node.name, []).append(node)
                self.read(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and node.value is not None:
                        plain = isinstance(node, ast.Assign | ast.AnnAssign)
                        value = node.value if plain else ast.Constant(None)
                        self.constants.setdefault(prefix + target.id, []).append(value)
            else:
                imported = imports_of(node)
                self.imports.update({item.local: (item.module, item.name) for item in imported})
                self.stars += [item.module for item in imported if item.name == "*"]

    def _read_factory(self, factory: FunctionNode) -> None:
        for owner in ast.walk(factory):
            if isinstance(owner, ast.ClassDef):
                for node in statements(owner.body):
                    if isinstance(node, FunctionNode):
                        self.made.setdefault(node.name, []).append(node)

    def use(self, module: ast.Module) -> None:
        """Note where names are used; what only happens when the file is run as a program is no use of them."""
        for node in (inner for top in module.body if not _is_for_programs(top) for inner in ast.walk(top)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.names.setdefault(node.id, []).append(node.lineno)
            elif isinstance(node, ast.Attribute):
                self.names.setdefault(node.attr, []).append(node.lineno)
                self.foreign.setdefault(node.attr, []).append(node.lineno)
            elif isinstance(node, ast.Import):
                self.modules.update(word for alias in node.names for word in alias.name.split("."))
            elif isinstance(node, ast.ImportFrom):
                self.modules.update((node.module or "").split("."))
                for alias in node.names:
                    self.modules.add(alias.name)
                    self.foreign.setdefault(alias.name, []).append(node.lineno)
            elif isinstance(node, ast.Assign) and "__all__" in (getattr(target, "id", "") for target in node.targets):
                for item in ast.walk(node.value):
                    if isinstance(item, ast.Constant) and isinstance(item.value, str):
                        self.names.setdefault(item.value, []).append(node.lineno)


def _is_for_programs(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If):
        return False
    return {"__name__", "__main__"} <= {getattr(part, "id", getattr(part, "value", "")) for part in ast.walk(node.test)}


class _Parsed(Mapping[str, TestFile]):
    """The files that can be read, each parsed when it is first asked for."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._found: dict[str, TestFile | None] = {}

    def __getitem__(self, path: str) -> TestFile:
        if path not in self._found:
            self._found[path] = parse_suite_file(path, self._sources[path]) if path in self._sources else None
        file = self._found[path]
        if file is None:
            raise KeyError(path)
        return file

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
        path, qualname = split_test_id(test)
        *owners, name = qualname.split("::")
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
        """The definitions of a class and of all it may inherit from, nearest first, as far as the test files have
        them."""
        classes: list[tuple[TestFile, str, ast.ClassDef]] = []
        waiting = [(self.parsed[path], name)]
        seen = set()
        while waiting:
            file, qualname = waiting.pop(0)
            if (file.path, qualname) in seen:
                continue
            seen.add((file.path, qualname))
            if qualname not in file.classes:
                outer, *inner = qualname.split("::")
                waiting += [(home, "::".join([there, *inner])) for home, there in self._homes(file, outer)[1:]]
                continue
            classes += [(file, qualname, node) for node in file.classes[qualname]]
            bases = [base for node in file.classes[qualname] for base in node.bases]
            waiting = [home for base in bases for home in self._bases(file, qualname, base)] + waiting
        return classes

    def _bases(self, file: TestFile, heir: str, base: ast.expr) -> list[tuple[TestFile, str]]:
        """The classes that an expression for a base names, whatever it does with them."""
        names = [ast.unparse(node).split(".") for node in ast.walk(base) if isinstance(node, ast.Name | ast.Attribute)]
        homes = [home for parts in names for home in self._class_homes(file, heir, parts)]
        return [(there, qualname) for there, qualname in homes if qualname in there.classes]

    def _class_homes(self, file: TestFile, heir: str, parts: list[str]) -> list[tuple[TestFile, str]]:
        """Where a class with a dotted name may be defined: beside its heir, in this file, or in a module it imports."""
        name = "::".join(parts)
        beside = f"{heir.rpartition('::')[0]}::{name}"
        if beside in file.classes:
            return [(file, beside)]
        if name in file.classes:
            return [(file, name)]
        homes = [(home, "::".join([inner, *parts[1:]])) for home, inner in self._homes(file, parts[0])[1:]]
        if parts[0] in file.imports:
            origin, inner = file.imports[parts[0]]
            for cut in range(1, len(parts)):
                modules = [(origin, ".".join(filter(None, [inner, *parts[1:cut]])))]
                modules += [] if inner else [(".".join(parts[:cut]), "")]
                for module in modules:
                    homes += [(there, "::".join(parts[cut:])) for there in self.modules(file.path, *module)]
        return homes

    def _homes(self, file: TestFile, name: str) -> list[tuple[TestFile, str]]:
        """Where a name may be from: this file, and those that it is imported from, under its name there."""
        defining: list[tuple[TestFile, str]] = []
        waiting = [(file, name)]
        while waiting:
            here, local = waiting.pop(0)
            if (here, local) not in defining:
                defining.append((here, local))
                origins = [here.imports[local]] if local in here.imports else []
                origins += [(origin, local) for origin in here.stars]
                homes = [(self.modules(here.path, origin), inner) for origin, inner in origins if inner]
                waiting = [(there, inner) for modules, inner in homes for there in modules] + waiting
        return defining

    def constant(self, file: TestFile, name: str, scope: str = "") -> tuple[TestFile, str] | None:
        """Where a name gets its value: in the class it is used in, at the top of the file, or where it is imported
        from."""
        homes = [*([(file, f"{scope}::{name}")] if scope else []), *self._homes(file, name)]
        return next(((home, inner) for home, inner in homes if inner in home.constants), None)

    def modules(self, path: str, origin: str, name: str = "") -> list[TestFile]:
        """The test files that an import in a file may name, the likeliest first."""
        here = posixpath.dirname(path)
        dots = len(origin) - len(origin.lstrip("."))
        below = ".".join(filter(None, [origin.lstrip("."), name])).replace(".", "/")
        above = [parent.as_posix() for parent in PurePosixPath(path).parents]
        roots = [posixpath.join(here, *[".."] * (dots - 1))] if dots else [here, ".", *above[1:]]
        stems = [posixpath.normpath(posixpath.join(root, below)) for root in dict.fromkeys(roots)]
        paths = [file for stem in stems for file in (f"{stem}.py", posixpath.normpath(f"{stem}/__init__.py"))]
        return [self.parsed[file] for file in dict.fromkeys(paths) if file != path and file in self.parsed]
