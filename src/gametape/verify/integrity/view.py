"""Which texts the rules over code read, and what they know about the task."""

import ast
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeVar

from gametape.verify.attempt import Attempt
from gametape.verify.integrity.code import Code, parse
from gametape.verify.integrity.inner import with_inner
from gametape.verify.integrity.source import source_text
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree, is_under

T = TypeVar("T")
_TEST_WORDS = {"test", "tests", "testing", "testutil", "testutils", "testlib", "conftest", "fixtures", "selftest"}


@dataclass(frozen=True)
class Setting:
    """What is known of the task: where tests lie, what its packages are called, how much of the world it uses."""

    test_paths: list[str] = field(default_factory=lambda: ["tests", "test"])
    test_files: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    instruction: str = ""
    uses: frozenset[str] = frozenset()
    """Modules that the task's own files import, tests included."""

    @functools.cached_property
    def test_modules(self) -> frozenset[str]:
        """Dotted names under which test files can be imported."""
        found = {".".join(PurePosixPath(place).parts[index:]) for place in self.test_paths for index in (0, -1)}
        for path in self.test_files:
            if path.endswith(".py"):
                parts = PurePosixPath(path.removesuffix(".py").removesuffix("/__init__")).parts
                found |= {".".join(parts[index:]) for index in range(len(parts) - 1)}
                found |= {parts[-1]} if re.fullmatch(r"test_\w+|\w+_test", parts[-1]) else set()
        return frozenset(found | {"conftest"}) - {"", "."} - self.packages

    def is_test_module(self, name: str) -> bool:
        """Whether importing this name loads a file of the tests."""
        name = name.lstrip(".")
        heads = {".".join(name.split(".")[:count]) for count in range(1, name.count(".") + 2)}
        return bool(heads & self.test_modules)

    def is_test_path(self, path: str) -> bool:
        """Whether a path, perhaps only its end, is one of the tests' own code files."""
        plain = path.removeprefix("./")
        base = plain.rsplit("/", 1)[-1]
        if re.search(r"(^|/)(conftest|test_[\w*]*|[\w*]+_test)\.py(/|$)", plain):
            return True
        return base.endswith(".py") and any(f"/{place}/" in f"/{plain}" for place in self.test_paths)


@dataclass(frozen=True)
class View:
    codes: list[Code]
    setting: Setting


def named_like_a_test(path: str) -> bool:
    """Whether a file's name or a directory above it says that it is about tests."""
    return any(word.lower() in _TEST_WORDS for word in re.findall(r"[A-Za-z]+", path.removesuffix(".py")))


def product_view(attempt: Attempt) -> View:
    """The Python the agent wrote that can become part of the product.

    A file that is named like a test and that no product file imports is the agent's own test, and may do what tests do.
    """
    written = [path for path in attempt.written_sources if path.endswith(".py")]
    return View(_product(attempt.sources, written, attempt.subject), setting_of(attempt.subject))


def own_view(subject: Subject) -> View:
    """The product's Python as the task's maker wrote it: before, and with the reference."""
    return _kept(_OWN_VIEWS, subject, _own_view)


def _own_view(subject: Subject) -> View:
    codes: list[Code] = []
    trees = [subject.start, *([subject.reference] if subject.reference else [])]
    seen: set[bytes] = set()
    for tree in trees:
        fresh = [path for path in tree if path.endswith((".py", ".pyi")) and tree.files[path] not in seen]
        seen |= {tree.files[path] for path in fresh}
        codes += _product(tree, fresh, subject)
    return View(codes, setting_of(subject))


def _product(tree: Tree, paths: list[str], subject: Subject) -> list[Code]:
    parsed = {path: code for path in paths if (code := parse(path, source_text(tree.files[path])))}
    own_tests = {path for path in parsed if named_like_a_test(path) or is_under(path, subject.task.test_paths)}
    imported = {
        name.lstrip(".").rsplit(".", cut)[0].rsplit(".", 1)[-1]
        for path, code in parsed.items()
        if path not in own_tests
        for _, name in code.imports
        for cut in (0, 1)
    }
    product = [
        code
        for path, code in parsed.items()
        if path not in own_tests
        or (PurePosixPath(path).stem in imported and not is_under(path, subject.task.test_paths))
    ]
    found = [inner for code in product for inner in with_inner(code)]
    for code in found:
        code.beside = found
    return found


def setting_of(subject: Subject) -> Setting:
    return _kept(_SETTINGS, subject, _setting_of)


def _setting_of(subject: Subject) -> Setting:
    trees = [subject.start, subject.suite, *([subject.reference] if subject.reference else [])]
    task = subject.task
    tests = {path for tree in trees for path in tree if is_under(path, task.test_paths)}
    product = {path for tree in trees for path in tree if path not in tests and path.endswith(".py")}
    return Setting(
        test_paths=[place.strip("/").removeprefix("./") for place in task.test_paths],
        test_files=frozenset(tests),
        packages=frozenset(_packages(product, task.import_roots)),
        instruction=task.instruction,
        uses=frozenset(
            name for tree in trees for path in tree if path.endswith(".py") for name in _imported(tree, path)
        ),
    )


_OWN_VIEWS: dict[str, View] = {}
_SETTINGS: dict[str, Setting] = {}
_MOST_KEPT = 16


def _kept(kept: dict[str, T], subject: Subject, make: Callable[[Subject], T]) -> T:
    """A task is verified many times, and its own trees never change."""
    if subject.digest not in kept:
        while len(kept) >= _MOST_KEPT:
            kept.pop(next(iter(kept)))
        kept[subject.digest] = make(subject)
    return kept[subject.digest]


def _packages(paths: Iterable[str], roots: list[str]) -> set[str]:
    found = set()
    for path in paths:
        for root in roots:
            below = path if root in (".", "") else path.removeprefix(root.strip("/") + "/")
            if is_under(path, [root]):
                found.add(below.split("/")[0].removesuffix(".py"))
    return found


def _imported(tree: Tree, path: str) -> set[str]:
    try:
        module = ast.parse(tree.text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found | {name.split(".")[0] for name in found}
