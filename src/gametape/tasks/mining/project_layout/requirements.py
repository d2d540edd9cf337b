"""What a project and its tests need: the little that is used of the much that is declared."""

import ast
import sys
from collections.abc import Iterable, Iterator

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.mining.project_layout.declared_metadata import DeclaredMetadata
from gametape.tasks.mining.project_layout.known_distributions import (
    AMBIGUOUS_WORDS,
    DISTRIBUTIONS_BY_MODULE,
    PLUGINS_BY_WORD,
)
from gametape.tasks.mining.project_layout.module_imports import imports_in, parse_or_none
from gametape.tasks.mining.project_layout.packages import PackagePaths
from gametape.tasks.mining.project_layout.requirement_groups import (
    GroupedRequirement,
    declared_requirements,
    is_test_group,
    parse_requirement,
)
from gametape.tasks.mining.project_layout.suite_discovery import pytest_settings, test_files_under

RUNNER_DISTRIBUTIONS = frozenset({"pytest", "coverage"})
"""What every environment has anyway, in the versions that gametape runs with."""


def project_requirements(tree: SourceTree, declared: DeclaredMetadata) -> tuple[str, ...]:
    """What the project needs at run time, with the markers decided for the Python that runs this."""
    name = canonicalize_name(declared.name)
    own = [line for group, line in declared_requirements(tree, declared) if not group]
    found = {one: line for one, line in _by_name(own, extra="").items() if one not in {name, *RUNNER_DISTRIBUTIONS}}
    return tuple(found[one] for one in sorted(found))


def test_requirements(
    tree: SourceTree,
    declared: DeclaredMetadata,
    name: str,
    places: PackagePaths,
    test_paths: tuple[str, ...],
    required: tuple[str, ...],
) -> tuple[str, ...]:
    """What the tests need beside pytest and the project's own requirements.

    Of what is declared for tests and development: what tests or the package import, and plugins of pytest that tests
    use. Of what is not declared: what test files import without a way around it.
    """
    every = [*declared_requirements(tree, declared)]
    lines = [*_with_own_extras([line for line in every if is_test_group(line[0])], every, canonicalize_name(name))]
    extras = {group for group, _ in lines}
    offered = {one: line for extra in sorted(extras) for one, line in _by_name(_of(lines, extra), extra).items()}
    files = _files_of_tests(tree, test_paths)
    own = _own_names(tree, places, test_paths)
    tests_import = {top for path in files for top in imports_in(tree.files[path]).top_level} - own
    package = tree.under(list(places.values()))
    package_imports = {
        top for path in package if path.endswith(".py") for top in imports_in(package.files[path]).top_level
    }
    used = {_distribution(top, offered) for top in (tests_import | package_imports) - own - sys.stdlib_module_names}
    wanted = {one: offered[one] for one in offered if one in used}
    needed = {top for path in files for top in imports_in(tree.files[path]).needed_top_level}
    if not required and not any(not group for group, _ in every) and not _says_what_it_needs(declared):
        needed |= {
            top for path in package if path.endswith(".py") for top in imports_in(package.files[path]).needed_top_level
        }
    known = {*offered, *(canonicalize_name(Requirement(line).name) for line in required)}
    for top in needed - own - sys.stdlib_module_names:
        wanted.setdefault(_distribution(top, known), _written(top, known))
    for plugin in _plugins(tree, files, frozenset(offered)):
        wanted[plugin] = offered.get(plugin, plugin)
    given = {canonicalize_name(Requirement(line).name) for line in required}
    unwanted = {canonicalize_name(name), *RUNNER_DISTRIBUTIONS, *given, "pip", "setuptools-scm"} | _PART_OF_PYTEST
    return tuple(wanted[one] for one in sorted(wanted) if one not in unwanted)


test_requirements.__test__ = False  # type: ignore[attr-defined]

_PART_OF_PYTEST = frozenset({"iniconfig", "pluggy"})


def _of(lines: Iterable[GroupedRequirement], group: str) -> list[str]:
    return [line for one, line in lines if one == group]


def _says_what_it_needs(declared: DeclaredMetadata) -> bool:
    """Whether an empty list of requirements is meant: somebody wrote a `[project]`, or a build wrote PKG-INFO."""
    return bool(declared.project or declared.poetry or declared.pkg_info_text)


def _by_name(lines: Iterable[str], extra: str) -> dict[str, str]:
    """Requirements that hold for this Python, without their markers; the first of a name counts."""
    found: dict[str, str] = {}
    for line in lines:
        read = parse_requirement(line)
        if read is not None and _holds(read, extra):
            read.marker = None
            found.setdefault(canonicalize_name(read.name), str(read))
    return found


def _holds(read: Requirement, extra: str) -> bool:
    try:
        return read.marker is None or read.marker.evaluate({"extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def _with_own_extras(
    lines: Iterable[GroupedRequirement], every: list[GroupedRequirement], name: str
) -> Iterator[GroupedRequirement]:
    """`project[extra]` among the requirements of its own tests stands for what is in that extra."""
    for group, line in lines:
        read = parse_requirement(line)
        if read is None or canonicalize_name(read.name) != name:
            yield group, line
        else:
            wanted = {canonicalize_name(extra) for extra in read.extras}
            yield from (other for other in every if canonicalize_name(other[0]) in wanted)


def _distribution(top: str, known: Iterable[str]) -> str:
    """The canonical name of the distribution that offers an import name: a known one, else the same name."""
    same = canonicalize_name(top)
    candidates = [same, *map(canonicalize_name, DISTRIBUTIONS_BY_MODULE.get(top, ())), f"python-{same}", f"py{same}"]
    return next((one for one in candidates if one in known), canonicalize_name(_written(top, ())))


def _written(top: str, known: Iterable[str]) -> str:
    if known and (found := _distribution(top, known)) in known:
        return found
    return DISTRIBUTIONS_BY_MODULE.get(top, (top,))[0]


def _files_of_tests(tree: SourceTree, test_paths: tuple[str, ...]) -> list[str]:
    """Test files, the conftest files above them, and the helpers that they import."""
    inside = [path for path in tree.under(list(test_paths)) if path.endswith(".py")]
    found = dict.fromkeys(test_files_under(tree, test_paths))
    found |= dict.fromkeys(
        path for path in tree if path == "conftest.py" or (path in inside and path.endswith("/conftest.py"))
    )
    waiting = [*found]
    while waiting:
        source = tree.files[waiting.pop()]
        words = {word for name in (*imports_in(source).needed, *_relative(source)) for word in name.split(".")}
        for path in inside:
            if path not in found and path.removesuffix("/__init__.py").rpartition("/")[2].removesuffix(".py") in words:
                found[path] = None
                waiting.append(path)
    return [*found]


def _relative(source: bytes) -> Iterator[str]:
    module = parse_or_none(source)
    for node in module.body if module else []:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def _own_names(tree: SourceTree, places: PackagePaths, test_paths: tuple[str, ...]) -> set[str]:
    """What is imported from the code base itself: packages, modules at the top, and whatever lies among the tests."""
    own = {*places, "__main__", "__future__"}
    own |= {path.partition("/")[0].removesuffix(".py") for path in tree if path.endswith(".py")}
    for path in tree:
        if path.endswith(".py") and is_under(path, list(test_paths)):
            own.update(part.removesuffix(".py") for part in path.split("/"))
    return own


def _plugins(tree: SourceTree, files: list[str], offered: frozenset[str]) -> Iterator[str]:
    """Plugins of pytest by the fixtures, marks and settings that only they give a meaning."""
    words, defined = set(pytest_settings(tree)), set[str]()
    for path in files:
        for kind, word in _words(tree.files[path]):
            (defined if kind == "fixture" else words).add(word)
    for word in sorted(words - defined):
        if found := next((one for one in PLUGINS_BY_WORD.get(word, ()) if one in offered), None):
            yield found
        elif word in PLUGINS_BY_WORD and word not in AMBIGUOUS_WORDS:
            yield PLUGINS_BY_WORD[word][0]
    required = pytest_settings(tree).get("required_plugins", "")
    yield from (canonicalize_name(read.name) for part in required.split() if (read := parse_requirement(part)))


def _words(source: bytes) -> Iterator[tuple[str, str]]:
    module = parse_or_none(source)
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_fixture = any("fixture" in ast.unparse(one) for one in node.decorator_list)
            if is_fixture:
                yield "fixture", node.name
            if is_fixture or node.name.startswith("test"):
                yield from (("used", argument.arg) for argument in [*node.args.args, *node.args.kwonlyargs])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark":
            yield "used", f"mark.{node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "usefixtures":
            yield from (("used", str(one.value)) for one in node.args if isinstance(one, ast.Constant))
