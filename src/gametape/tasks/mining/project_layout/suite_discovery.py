"""Find the tests of a project, and the files to give to pytest to run them."""

import ast
import fnmatch
import functools
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.mining.project_layout.declared_metadata import read_ini, read_toml, toml_table
from gametape.tasks.mining.project_layout.module_imports import parse_or_none
from gametape.tasks.project import Project

TEST_DIRECTORIES = frozenset(
    {
        *("tests", "test", "testing", "t", "unittests", "unittest", "unit_tests", "testsuite", "test_suite", "_tests"),
        "spec",
    }
)
NON_SOURCE_DIRECTORIES = frozenset(
    {
        *("doc", "docs", "documentation", "example", "examples", "sample", "samples", "demo", "demos", "tutorial"),
        *("benchmark", "benchmarks", "bench", "asv_bench", "perf", "performance", "script", "scripts", "tool", "tools"),
        *("bin", "ci", "etc", "contrib", "extras", "misc", "fuzz", "fuzzing", "fuzzers", "requirements", "utils"),
        *("vendor", "_vendor", "vendored", "third_party", "notebooks", "site", "website", "build", "dist", "recipes"),
        *("changelog", "changes", "news", "licenses", "packaging", "docker", "tasks", "typings", "stubs", "assets"),
    }
)
"""Directories that are neither the package nor its tests, unless they are declared."""

_USUAL = ("test_*.py", "*_test.py")
_OTHERS = ("*_tests.py", "tests.py", "test.py", "tests_*.py", "*test*.py")


@functools.lru_cache(maxsize=8)
def pytest_settings(tree: SourceTree) -> Mapping[str, str]:
    """The ini options of pytest, as text, from the file that pytest would use."""
    for path in ("pytest.ini", ".pytest.ini"):
        if path in tree:
            return read_ini(tree, path).get("pytest", {})
    tool = toml_table(read_toml(tree, "pyproject.toml"), "tool", "pytest")
    if tool:
        return {key: _text(value) for key, value in {**toml_table(tool, "ini_options"), **tool}.items()}
    return read_ini(tree, "tox.ini").get("pytest") or read_ini(tree, "setup.cfg").get("tool:pytest") or {}


def _text(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def find_test_paths(tree: SourceTree, packages: tuple[str, ...]) -> tuple[str, ...]:
    """Directories of tests, and test files that are next to other code."""
    paths = [*_directories(tree)]
    paths += [path for path in _test_files(tree, _python(tree)) if not is_under(path, paths) and not _is_aside(path)]
    hints = [hint for hint in _hints(tree) if hint not in (".", "")]
    hinted = [candidate for candidate in paths if is_under(candidate, hints)]
    hinted += [hint for hint in hints if _is_suite(tree, hint, packages) and not is_under(hint, paths)]
    hinted += [candidate for hint in hints for candidate in paths if is_under(hint, [candidate])]
    return tuple(sorted(_topmost(set(hinted or paths))))


def _hints(tree: SourceTree) -> list[str]:
    settings = pytest_settings(tree)
    given = shlex.split(settings.get("testpaths", ""), posix=True)
    plain = [candidate.removeprefix("./").rstrip("/") for candidate in given]
    paths = {*tree.files, *(parent for path in tree for parent in _above(path))}
    return [candidate for hint in plain for candidate in ([hint] if "*" not in hint else fnmatch.filter(paths, hint))]


def _above(path: str) -> Iterator[str]:
    return (parent.as_posix() for parent in PurePosixPath(path).parents if parent.parts)


def _is_suite(tree: SourceTree, path: str, packages: tuple[str, ...]) -> bool:
    """Whether a path in `testpaths` contains only tests; it may also be a package with tests in it."""
    holds_code = any(is_under(package, [path]) or is_under(path, [package]) for package in packages)
    return not holds_code and bool(_test_files(tree, _python(tree.under([path]))))


def _directories(tree: SourceTree) -> Iterator[str]:
    """The topmost directories that are named like tests and contain some."""
    holders = {}
    for path in _test_files(tree, _python(tree)):
        above = [*_above(path)]
        named = [directory for directory in above if _is_test_name(directory.rpartition("/")[2])]
        if named and not _is_aside(named[-1]):
            holders[path] = named
    for path, named in holders.items():
        parent = path.rpartition("/")[0]
        # a package may be named testing because it helps to test others, and have its own tests inside
        yield next(
            directory
            for directory in reversed(named)
            if not directory.endswith("/testing") or directory in (parent, named[0])
        )


def _is_test_name(name: str) -> bool:
    return (
        name.lower() in TEST_DIRECTORIES or name.startswith(("tests_", "test_")) or name.endswith(("_tests", "_test"))
    )


def _is_aside(path: str) -> bool:
    return any(part.lower() in NON_SOURCE_DIRECTORIES or part.startswith(".") for part in path.split("/")[:1])


def _topmost(paths: set[str]) -> Iterator[str]:
    return (path for path in paths if not is_under(path, [other for other in paths if other != path]))


def _python(tree: SourceTree) -> list[str]:
    return [path for path in tree if path.endswith(".py")]


def project_test_files(project: Project) -> tuple[str, ...]:
    """The files to give to pytest, sorted. Pytest collects a given file whatever its name."""
    return test_files_under(project.tree, project.test_paths)


def test_files_under(tree: SourceTree, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The test files under these paths. If none is named like a test, those that contain tests."""
    named = [given for given in paths if given in tree]
    inside = tree.under(list(paths))
    files = {path for path in _test_files(tree, _python(inside), anywhere=True) if not _is_skipped(tree, path, paths)}
    hints = _hints(tree)
    hinted = {path for path in files if is_under(path, hints)} if hints else set()
    return tuple(sorted((hinted or files) | {path for path in named if path.endswith(".py")}))


project_test_files.__test__ = False  # type: ignore[attr-defined]


def _test_files(tree: SourceTree, paths: list[str], anywhere: bool = False) -> list[str]:
    """Test files by the project's own patterns, else by the usual ones, else by their content: in files with names like
    tests, or in all files if `anywhere`.

    A file that matches the project's own pattern but only imports tests of other files is skipped: each test has to run
    where it is defined.
    """
    own = pytest_settings(tree).get("python_files", "").split()
    readable = [path for path in paths if parse_or_none(tree.files[path]) is not None]
    if own and (matching := [path for path in readable if _matches(path, own) and holds_tests(tree.files[path])]):
        return matching
    if matching := [path for path in readable if is_test_file(path)]:
        return matching
    others = [path for path in readable if (anywhere or _is_test_like(path)) and holds_tests(tree.files[path])]
    return [path for path in others if not path.endswith(("/__init__.py", "/conftest.py"))]


def is_test_file(path: str) -> bool:
    """Whether pytest collects a file by its name."""
    return _matches(path, _USUAL)


def _matches(path: str, patterns: tuple[str, ...] | list[str]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns)


def _is_test_like(path: str) -> bool:
    *above, name = path.split("/")
    return any(map(_is_test_name, above)) or _matches(name, _OTHERS)


@functools.lru_cache(maxsize=4096)
def holds_tests(source: bytes) -> bool:
    """Whether a file itself defines tests: functions or methods that pytest or unittest collects."""
    module = parse_or_none(source)
    return module is not None and any(_is_test(node) for node in module.body)


def _is_test(node: ast.stmt) -> bool:
    if isinstance(node, ast.ClassDef):
        bases = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
        named = node.name.startswith("Test") or any("Test" in base for base in bases)
        return named and any(_is_test(inner) for inner in node.body)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _is_skipped(tree: SourceTree, path: str, paths: tuple[str, ...]) -> bool:
    """Whether pytest would skip the directory of this file (`norecursedirs`). A file given by name is never skipped."""
    if path in paths:
        return False
    usual = "*.egg .* _darcs build CVS dist node_modules venv {arch}"
    patterns = pytest_settings(tree).get("norecursedirs", usual).split()
    top = next((directory for directory in paths if is_under(path, [directory])), "")
    return any(
        _matches(directory, patterns) or directory in patterns
        for directory in _above(path)
        if directory != top and is_under(directory, [top])
    )
