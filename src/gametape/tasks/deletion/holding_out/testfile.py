"""One test file as it is written: what it defines, and the names it uses."""

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from gametape.verify.twins.edit import Text

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = FunctionNode | ast.ClassDef
Spot = tuple[str, int, int]
"""A place in a test file: path, line and column, as syntax trees count them."""


@dataclass(frozen=True, eq=False)
class TestFile:
    """One parsed file: its definitions by name (`A::B::test_c`), and the lines on which names are used."""

    __test__ = False

    path: str
    text: Text
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

    def spot(self, node: ast.expr | ast.stmt) -> Spot:
        return self.path, node.lineno, node.col_offset


@functools.lru_cache(maxsize=512)
def parse(path: str, content: bytes) -> TestFile | None:
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
        path, Text(source), module, found.functions, found.classes, found.made, found.constants, found.imports,
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
