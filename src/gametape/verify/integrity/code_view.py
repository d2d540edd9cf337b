"""The Python modules that code rules read, and the context of the task that they are given."""

import ast
import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeVar

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.names import imports_in
from gametape.syntax.resolved_module import ResolvedModule, resolve_module
from gametape.syntax.source import decode_source, parse_or_none
from gametape.verify.submission import Submission


def with_embedded_code(code: ResolvedModule, depth: int = 3) -> Iterator[ResolvedModule]:
    """A module and the constant texts in it that it runs as Python: `exec`, `eval`, `compile`, `python -c`."""
    yield code
    if not depth:
        return
    for node, name in code.calls:
        text: str | None = None
        if (
            name in ("exec", "eval", "compile", "runpy.run_path", "codeop.compile_command", "timeit.timeit")
            and node.args
        ):
            value = code.folded_or_default(node.args[0])
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        elif node.args and "-c" in (words := code.constant_texts(node.args[0])):
            text = next(iter(words[words.index("-c") + 1 :]), None)
        if (
            isinstance(text, str)
            and len(text) > 3
            and (inner := resolve_module(code.path, text, code.line_of(node), code))
        ):
            yield from with_embedded_code(inner, depth - 1)


T = TypeVar("T")
_TEST_WORDS = {"test", "tests", "testing", "testutil", "testutils", "testlib", "conftest", "fixtures", "selftest"}


@dataclass(frozen=True)
class TaskContext:
    """What code rules know of the task: its test paths, its packages, its instruction and the modules it imports."""

    test_paths: list[str] = field(default_factory=lambda: ["tests", "test"])
    test_files: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    instruction: str = ""
    imported_modules: frozenset[str] = frozenset()
    """Modules that the task's own files import, tests included."""
    test_values: frozenset[str] = frozenset()
    """Names that test files give to values of their own, and that no other file of the task mentions."""

    @functools.cached_property
    def test_modules(self) -> frozenset[str]:
        """Dotted names under which test files can be imported."""
        names = {".".join(PurePosixPath(path).parts[index:]) for path in self.test_paths for index in (0, -1)}
        for path in self.test_files:
            if path.endswith(".py"):
                parts = PurePosixPath(path.removesuffix(".py").removesuffix("/__init__")).parts
                names |= {".".join(parts[index:]) for index in range(len(parts) - 1)}
                names |= {parts[-1]} if re.fullmatch(r"test_\w+|\w+_test", parts[-1]) else set()
        return frozenset(names | {"conftest"}) - {"", "."} - self.packages

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
        return base.endswith(".py") and any(f"/{directory}/" in f"/{plain}" for directory in self.test_paths)


@dataclass(frozen=True)
class CodeView:
    modules: list[ResolvedModule]
    context: TaskContext


def named_like_a_test(path: str) -> bool:
    """Whether the name of a file, or of a directory above it, holds a word for tests."""
    return any(word.lower() in _TEST_WORDS for word in re.findall(r"[A-Za-z]+", path.removesuffix(".py")))


def submitted_code(submission: Submission) -> CodeView:
    """The Python the agent wrote that can become part of the product.

    A file that is named like a test and that no product file imports is the agent's own test, and may do what tests do.
    """
    key = f"{submission.loaded_task.digest} {submission.sources.digest}"
    return _made_once(_SUBMITTED_CODE, key, lambda: _read_submitted_code(submission))


def _read_submitted_code(submission: Submission) -> CodeView:
    written = [path for path in submission.changed_sources if path.endswith(".py")]
    return CodeView(
        _product_modules(submission.sources, written, submission.loaded_task), task_context(submission.loaded_task)
    )


def task_code(loaded_task: LoadedTask) -> CodeView:
    """The product's Python as the task's maker wrote it: before, and with the reference."""
    return cached_by_task(_TASK_CODE, loaded_task, _read_task_code)


def _read_task_code(loaded_task: LoadedTask) -> CodeView:
    codes: list[ResolvedModule] = []
    trees = [loaded_task.start, *([loaded_task.reference] if loaded_task.reference else [])]
    seen: set[bytes] = set()
    for tree in trees:
        fresh = [path for path in tree if path.endswith((".py", ".pyi")) and tree.files[path] not in seen]
        seen |= {tree.files[path] for path in fresh}
        codes += _product_modules(tree, fresh, loaded_task)
    return CodeView(codes, task_context(loaded_task))


def _product_modules(tree: SourceTree, paths: list[str], loaded_task: LoadedTask) -> list[ResolvedModule]:
    parsed = {path: code for path in paths if (code := resolve_module(path, decode_source(tree.files[path])))}
    own_tests = {path for path in parsed if named_like_a_test(path) or is_under(path, loaded_task.task.test_paths)}
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
        or (PurePosixPath(path).stem in imported and not is_under(path, loaded_task.task.test_paths))
    ]
    modules = [inner for code in product for inner in with_embedded_code(code)]
    for code in modules:
        code.siblings = modules
    return modules


def task_context(loaded_task: LoadedTask) -> TaskContext:
    return cached_by_task(_TASK_CONTEXTS, loaded_task, _read_task_context)


def _read_task_context(loaded_task: LoadedTask) -> TaskContext:
    trees = [loaded_task.start, loaded_task.suite, *([loaded_task.reference] if loaded_task.reference else [])]
    task = loaded_task.task
    tests = {path for tree in trees for path in tree if is_under(path, task.test_paths)}
    product = {path for tree in trees for path in tree if path not in tests and path.endswith(".py")}
    return TaskContext(
        test_paths=[path.strip("/").removeprefix("./") for path in task.test_paths],
        test_files=frozenset(tests),
        packages=frozenset(_packages(product, task.import_roots)),
        instruction=task.instruction,
        imported_modules=frozenset(
            name for tree in trees for path in tree if path.endswith(".py") for name in _imported_modules(tree, path)
        ),
        test_values=_test_values(loaded_task.suite, [tree.files[path] for tree in trees for path in product & {*tree}]),
    )


def _test_values(suite: SourceTree, product: Iterable[bytes]) -> frozenset[str]:
    modules = [parse_or_none(suite.files[path], bounded=True) for path in suite if path.endswith(".py")]
    targets = [
        target
        for module in modules
        for node in (module.body if module else ())
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    names = {target.id for target in targets if isinstance(target, ast.Name) and not target.id.startswith("__")}
    words = {word for text in product for word in re.findall(rb"\w+", text)} if names else set()
    return frozenset(name for name in names if name.encode() not in words)


_TASK_CODE: dict[str, CodeView] = {}
_TASK_CONTEXTS: dict[str, TaskContext] = {}
_SUBMITTED_CODE: dict[str, CodeView] = {}
_MAX_CACHED = 16
_one_at_a_time = threading.Lock()


def cached_by_task(cache: dict[str, T], loaded_task: LoadedTask, make: Callable[[LoadedTask], T]) -> T:
    """What `make` gives for a task, made once: a task is verified many times, and its own trees never change."""
    return _made_once(cache, loaded_task.digest, lambda: make(loaded_task))


def _made_once(cache: dict[str, T], key: str, make: Callable[[], T]) -> T:
    with _one_at_a_time:
        if key in cache:
            return cache[key]
    made = make()
    with _one_at_a_time:
        while len(cache) >= _MAX_CACHED:
            cache.pop(next(iter(cache)))
        cache[key] = made
    return made


def _packages(paths: Iterable[str], roots: list[str]) -> set[str]:
    packages = set()
    for path in paths:
        for root in roots:
            below = path if root in (".", "") else path.removeprefix(root.strip("/") + "/")
            if is_under(path, [root]):
                packages.add(below.split("/")[0].removesuffix(".py"))
    return packages


def _imported_modules(tree: SourceTree, path: str) -> set[str]:
    module = parse_or_none(tree.text(path))
    imports = [imported for imported in imports_in(module) if imported.module.strip(".")] if module else []
    names = {name.lstrip(".") for imported in imports for name in (imported.module, imported.target)}
    return names | {name.split(".")[0] for name in names}
