"""Files outside of the tests that are on the tests' side all the same: helpers, references and cases.

They are not pinned, since the same signs fit public modules of a product. A change of one of them is told.
"""

import ast
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.source import parse_or_none

_LIBRARIES = frozenset(("pytest", "unittest", "hypothesis", "doctest"))
_NAMES = re.compile(
    r"(^|_)(testing|tests?|test_?utils?|helpers?|asserts?|assertions?|checks?|oracle|reference|naive|slow|brute(force)?|"
    r"golden|expected|fixtures?|cases?|samples?|baseline|simple)(_|$)"
)
"""Names by which people call what only their tests use."""


@dataclass(frozen=True)
class SuiteCompanions:
    """What the tests of a start tree use beside the product."""

    own: frozenset[str] = frozenset()
    """Modules that only tests import and that check something or are called so, and data that only tests name."""
    compared: frozenset[tuple[str, str]] = frozenset()
    """Pairs of modules outside of the tests whose answers a test compares with each other."""

    def compared_with(self, changed: set[str]) -> dict[str, list[str]]:
        """Changed modules that tests compare with other ones, and those."""
        found: dict[str, set[str]] = {}
        for one, other in self.compared:
            for path, against in ((one, other), (other, one)):
                if path in changed:
                    found.setdefault(path, set()).add(against)
        return {path: sorted(others) for path, others in sorted(found.items())}


def find_companions(start: SourceTree, test_paths: Sequence[str], import_roots: Sequence[str]) -> SuiteCompanions:
    """Read it off the sources."""
    parsed = {path: parse_or_none(start.files[path], bounded=True) for path in start if path.endswith(".py")}
    modules = {path: _Imports(path, tree, start, import_roots) for path, tree in parsed.items() if tree is not None}
    tests = {path for path in modules if is_under(path, list(test_paths))}
    by_tests = {used for path in tests for used in modules[path].used} - tests
    by_product = {used for path in modules.keys() - tests for used in modules[path].used - {path}}
    own = {path for path in by_tests - by_product if modules.get(path) and _is_for_tests(path, modules[path])}
    texts = [start.files[path] for path in modules.keys() - tests - own]
    named = [start.files[path] for path in tests | own]
    for path in start:
        name = posixpath.basename(path).encode()
        if not path.endswith((".py", ".pyi")) and not is_under(path, list(test_paths)):
            own |= {path} if any(name in text for text in named) and not any(name in text for text in texts) else set()
    compared = {pair for path in tests for pair in modules[path].compared() if not tests & {*pair}}
    return SuiteCompanions(frozenset(own), frozenset(compared))


def _is_for_tests(path: str, module: "_Imports") -> bool:
    stem = posixpath.basename(path).removesuffix(".py")
    checks = any(isinstance(node, ast.Assert) for node in ast.walk(module.tree)) and bool(module.used)
    return checks or bool(_NAMES.search(stem)) or bool(_LIBRARIES & module.libraries)


class _Imports:
    """The files of the workspace that a module imports, and the names by which it knows them."""

    def __init__(self, path: str, tree: ast.Module, start: SourceTree, roots: Sequence[str]) -> None:
        self.tree = tree
        self.used: set[str] = set()
        self.libraries: set[str] = set()
        self._names: dict[str, str] = {}
        self._start, self._roots = start, roots
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.libraries.add(alias.name.partition(".")[0])
                    self._bind(alias.asname or alias.name, self._find(alias.name.replace(".", "/")))
            elif isinstance(node, ast.ImportFrom):
                self.libraries.add((node.module or "").partition(".")[0] if not node.level else "")
                base = (node.module or "").replace(".", "/")
                if node.level:
                    above = path.split("/")[: -node.level]
                    base = "/".join([*above, base] if base else above)
                for alias in node.names:
                    found = self._find(f"{base}/{alias.name}", bool(node.level))
                    self._bind(alias.asname or alias.name, found or self._find(base, bool(node.level)))

    def _find(self, stem: str, relative: bool = False) -> str | None:
        roots = (".",) if relative else (*self._roots, ".")
        places = [posixpath.normpath(posixpath.join(root, stem)) for root in roots]
        names = [name for place in places for name in (f"{place}.py", f"{place}/__init__.py")]
        return next((name for name in names if name in self._start), None)

    def _bind(self, name: str, path: str | None) -> None:
        if path is not None:
            self.used.add(path)
            self._names[name] = path

    def compared(self) -> set[tuple[str, str]]:
        """Pairs of modules whose calls stand on the two sides of a comparison in an assertion, in their own words or by
        a name that was given to the answer."""
        pairs: set[tuple[str, str]] = set()
        for function in ast.walk(self.tree):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            answers: dict[str, set[str]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            answers[target.id] = self._called(node.value, {})
            for node in ast.walk(function):
                if isinstance(node, ast.Compare):
                    left = self._called(node.left, answers)
                    right = {path for one in node.comparators for path in self._called(one, answers)}
                    pairs |= {(one, other) for one in left for other in right if one != other}
        return pairs

    def _called(self, expression: ast.expr, answers: dict[str, set[str]]) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                found |= {path for bound, path in self._names.items() if name == bound or name.startswith(f"{bound}.")}
            elif isinstance(node, ast.Name):
                found |= answers.get(node.id, set())
        return found
