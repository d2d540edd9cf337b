"""One test file as it is written: what it defines, and the names it uses."""

import ast
import functools
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from gametape.verify.twins.source_edit import SourceText

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = FunctionNode | ast.ClassDef
SourcePosition = tuple[str, int, int]
"""A place in a test file: path, line and column, as syntax trees count them."""


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
    """Methods of classes that functions make, by their bare name: their tests have names that nobody can read here."""
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
        found = {node.lineno: name for name, nodes in self.functions.items() for node in nodes}
        return found | {node.lineno: name for name, nodes in self.classes.items() for node in nodes}

    def position_of(self, node: ast.expr | ast.stmt) -> SourcePosition:
        return self.path, node.lineno, node.col_offset


@functools.lru_cache(maxsize=512)
def parse_suite_file(path: str, content: bytes) -> TestFile | None:
    """None for what is no plain Python text."""
    try:
        source = content.decode("utf-8")
        if source.startswith("\ufeff") or not path.endswith(".py"):
            return None
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = _Found()
    found.read(module.body, "")
    found.use(module)
    return TestFile(
        path, SourceText(source), module, found.functions, found.classes, found.made, found.constants, found.imports,
        found.stars, found.modules, found.names, found.foreign,
    )  # fmt: skip


@dataclass
class _Found:
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
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (node.module or "")
                self.imports.update({each.asname or each.name: (origin, each.name) for each in node.names})
                self.stars += [origin for each in node.names if each.name == "*"]
            elif isinstance(node, ast.Import):
                self.imports.update(
                    {each.asname or each.name.partition(".")[0]: (each.name, "") for each in node.names}
                )

    def _read_factory(self, factory: FunctionNode) -> None:
        for owner in ast.walk(factory):
            if isinstance(owner, ast.ClassDef):
                for node in statements(owner.body):
                    if isinstance(node, FunctionNode):
                        self.made.setdefault(node.name, []).append(node)

    def use(self, module: ast.Module) -> None:
        """Note where names are used; what only happens when the file is run as a program is no use of them."""
        for node in (inner for each in module.body if not _is_for_programs(each) for inner in ast.walk(each)):
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
            elif isinstance(node, ast.Assign) and "__all__" in (getattr(each, "id", "") for each in node.targets):
                for each in ast.walk(node.value):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        self.names.setdefault(each.value, []).append(node.lineno)


def _is_for_programs(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If):
        return False
    return {"__name__", "__main__"} <= {getattr(each, "id", getattr(each, "value", "")) for each in ast.walk(node.test)}


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, with those under a condition or the like."""
    for node in body:
        yield node
        for inner in blocks(node):
            yield from statements(inner)


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies inside a statement that are no scope of their own."""
    if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
        for part in ("body", "orelse", "finalbody"):
            if inner := getattr(node, part, []):
                yield inner
        for handler in getattr(node, "handlers", []):
            yield handler.body


def first_line(node: Definition) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


_LONGEST_WAY = 4
"""Imports that are followed to find out where a name is from."""


class _Parsed(Mapping[str, TestFile]):
    """The files that can be read, each parsed when it is first asked for."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._found: dict[str, TestFile | None] = {}

    def __getitem__(self, path: str) -> TestFile:
        if path not in self._found:
            self._found[path] = parse_suite_file(path, self._sources[path]) if path in self._sources else None
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
