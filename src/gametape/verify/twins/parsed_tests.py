"""A parsed test file and its test functions, with what their names stand for where the file makes that certain."""

import ast
import builtins
import functools
from collections.abc import Mapping

from gametape.syntax.definitions import FunctionNode
from gametape.syntax.names import bound_names, import_origins, names_in
from gametape.syntax.source import parse
from gametape.syntax.source_text import SourceText

_UNSTEADY_MODULES = {"time", "random", "uuid", "secrets", "gc", "threading", "multiprocessing", "psutil", "resource"}
_UNSTEADY_CALLS = {"builtins.id", "builtins.hash", "os.urandom", "os.getpid", "tracemalloc", "sys.getrefcount"}
_UNSTEADY_METHODS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter", "process_time", "random"}


def _is_itself(text: str, value: object) -> bool:
    """Whether a text is a constant by itself, and not a piece of an f-string or of joined strings."""
    try:
        return type(evaluated := ast.literal_eval(text)) is type(value) and evaluated == value
    except (ValueError, SyntaxError):
        return False


class ParsedTestFile:
    """One test file: its text, its syntax tree and its names."""

    def __init__(self, source: str, helpers: Mapping[str, str]) -> None:
        self.text = SourceText(source)
        self._helpers = helpers
        self.tree = parse(source)
        self.imports = import_origins(self.tree)
        self.functions: dict[str, FunctionNode] = {}
        self.assigned_values: dict[str, list[ast.expr]] = {}
        for statement in self.tree.body:
            if isinstance(statement, FunctionNode):
                self.functions[statement.name] = statement
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.assigned_values.setdefault(target.id, []).append(statement.value)
        self._bound = bound_names(self.tree, inner_scopes=True)

    @functools.cached_property
    def constants(self) -> list[tuple[str, object]]:
        """Numbers and texts that stand in assertions and calls, as written and as they are."""
        inside = (
            node
            for top in ast.walk(self.tree)
            if isinstance(top, ast.Assert | ast.Call)
            for node in ast.walk(top)
            if isinstance(node, ast.Constant) and type(node.value) in (int, float, str)
        )
        by_text = {self.text.text_of(node): node.value for node in inside}
        return [(text, value) for text, value in by_text.items() if "\n" not in text and _is_itself(text, value)]

    def resolve_helper(self, name: str) -> tuple["ParsedTestFile", FunctionNode] | None:
        """The one function of the suite that a name of this file stands for."""
        if name in self.functions and name not in self.imports and name not in self.assigned_values:
            return self, self.functions[name]
        origin = self.imports.get(name, "")
        function = origin.rpartition(".")[2]
        module = origin.removesuffix(function)
        module = module.removesuffix(".") if module.strip(".") else module
        if module not in self._helpers:
            return None
        there = _parse_or_none(self._helpers[module])
        return (there, there.functions[function]) if there and function in there.functions else None

    def resolve(self, node: ast.AST, local: frozenset[str] = frozenset()) -> str | None:
        """The dotted name of what an expression names, as `pytest.raises` or `builtins.len`; None if not certain."""
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value, local)
            return f"{base}.{node.attr}" if base else None
        if not isinstance(node, ast.Name) or node.id in local:
            return None
        if node.id in self.imports:
            return self.imports[node.id]
        if node.id not in self._bound and hasattr(builtins, node.id):
            return f"builtins.{node.id}"
        return None


@functools.lru_cache(maxsize=64)
def _parse_or_none(source: str) -> ParsedTestFile | None:
    try:
        return ParsedTestFile(source, {})
    except SyntaxError:
        return None


class TestFunction:
    """A test function in its file: the input of every maker of twins."""

    __test__ = False

    def __init__(
        self, module: ParsedTestFile, name: str, node: FunctionNode, owners: tuple[ast.ClassDef, ...], depth: int = 0
    ) -> None:
        self.module = module
        self.text = module.text
        self.name = name
        self.node = node
        self.enclosing_classes = owners
        self.depth = depth
        """How many calls of helpers lie between the test and this function."""

    @property
    def constants(self) -> list[tuple[str, object]]:
        """The plain constants of its file, as written and as they are."""
        return self.module.constants

    @functools.cached_property
    def local_names(self) -> frozenset[str]:
        return bound_names(self.node, inner_scopes=True) - {self.node.name} - import_origins(self.node).keys()

    def resolve(self, node: ast.AST) -> str | None:
        return self.module.resolve(node, self.local_names)

    def called_name(self, node: ast.AST) -> str | None:
        """What is called, where the node is a call of something certain."""
        return self.resolve(node.func) if isinstance(node, ast.Call) else None

    @functools.cached_property
    def self_name(self) -> str | None:
        """The name of `self` in a method."""
        arguments = self.node.args.posonlyargs + self.node.args.args
        return arguments[0].arg if self.enclosing_classes and arguments else None

    def self_method_name(self, node: ast.AST) -> str | None:
        """The name of the method, where the node is a call `self.name(...)`."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            return node.func.attr if self.self_name and node.func.value.id == self.self_name else None
        return None

    @functools.cached_property
    def nondeterministic_names(self) -> frozenset[str]:
        """Names whose values come from the clock, from chance or from addresses."""
        names: set[str] = set()
        for _ in range(3):
            for node in ast.walk(self.node):
                if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For):
                    value = node.iter if isinstance(node, ast.For) else node.value
                    if value is not None and self._from_chance(value, names):
                        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                        names |= {name for target in targets for name in names_in(target)}
        return frozenset(names)

    def is_deterministic(self, node: ast.AST) -> bool:
        """Whether an expression gives the same each time the test runs, if the code under test does."""
        return not self._from_chance(node, self.nondeterministic_names)

    def _from_chance(self, tree: ast.AST, names: set[str] | frozenset[str]) -> bool:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                return True
            if isinstance(node, ast.Call):
                origin = self.resolve(node.func) or ""
                if origin in _UNSTEADY_CALLS or origin.split(".")[0] in _UNSTEADY_MODULES:
                    return True
                if isinstance(node.func, ast.Attribute) and node.func.attr in _UNSTEADY_METHODS:
                    return True
        return False
