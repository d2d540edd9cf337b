"""Find what a project and its tests need: of the declared requirements, those that are used."""

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
"""What every environment has, in gametape's own versions."""


def project_requirements(tree: SourceTree, declared: DeclaredMetadata) -> tuple[str, ...]:
    """The project's run-time requirements. Markers are evaluated for the current Python."""
    name = canonicalize_name(declared.name)
    own = [line for group, line in declared_requirements(tree, declared) if not group]
    requirements = {
        distribution: line
        for distribution, line in _by_name(own, extra="").items()
        if distribution not in {name, *RUNNER_DISTRIBUTIONS}
    }
    return tuple(requirements[distribution] for distribution in sorted(requirements))


def test_requirements(
    tree: SourceTree,
    declared: DeclaredMetadata,
    name: str,
    packages: PackagePaths,
    test_paths: tuple[str, ...],
    required: tuple[str, ...],
) -> tuple[str, ...]:
    """What the tests need in addition to pytest and the project's own requirements.

    Of requirements declared for tests and development, these are the modules that tests or the package import, and the
    pytest plugins that tests use. Of undeclared modules, these are the ones that test files import unconditionally.
    """
    every = [*declared_requirements(tree, declared)]
    lines = [*_with_own_extras([line for line in every if is_test_group(line[0])], every, canonicalize_name(name))]
    extras = {group for group, _ in lines}
    offered = {
        distribution: line
        for extra in sorted(extras)
        for distribution, line in _by_name(_of(lines, extra), extra).items()
    }
    files = _files_of_tests(tree, test_paths)
    own = _own_names(tree, packages, test_paths)
    tests_import = {top for path in files for top in imports_in(tree.files[path]).top_level} - own
    package = tree.under(list(packages.values()))
    package_imports = {
        top for path in package if path.endswith(".py") for top in imports_in(package.files[path]).top_level
    }
    used = {_distribution(top, offered) for top in (tests_import | package_imports) - own - sys.stdlib_module_names}
    wanted = {distribution: offered[distribution] for distribution in offered if distribution in used}
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
    return tuple(wanted[distribution] for distribution in sorted(wanted) if distribution not in unwanted)


test_requirements.__test__ = False  # type: ignore[attr-defined]

_PART_OF_PYTEST = frozenset({"iniconfig", "pluggy"})


def _of(lines: Iterable[GroupedRequirement], group: str) -> list[str]:
    return [line for other, line in lines if other == group]


def _says_what_it_needs(declared: DeclaredMetadata) -> bool:
    """Whether an empty list of requirements is deliberate: there is a `[project]` table or a PKG-INFO."""
    return bool(declared.project or declared.poetry or declared.pkg_info_text)


def _by_name(lines: Iterable[str], extra: str) -> dict[str, str]:
    """By name: the first requirement that applies to this Python, without its marker."""
    requirements: dict[str, str] = {}
    for line in lines:
        requirement = parse_requirement(line)
        if requirement is not None and _holds(requirement, extra):
            requirement.marker = None
            requirements.setdefault(canonicalize_name(requirement.name), str(requirement))
    return requirements


def _holds(requirement: Requirement, extra: str) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def _with_own_extras(
    lines: Iterable[GroupedRequirement], every: list[GroupedRequirement], name: str
) -> Iterator[GroupedRequirement]:
    """Replace `project[extra]` among the requirements of its own tests by the requirements of that extra."""
    for group, line in lines:
        requirement = parse_requirement(line)
        if requirement is None or canonicalize_name(requirement.name) != name:
            yield group, line
        else:
            wanted = {canonicalize_name(extra) for extra in requirement.extras}
            yield from (other for other in every if canonicalize_name(other[0]) in wanted)


def _distribution(top: str, known: Iterable[str]) -> str:
    """The canonical name of the distribution that provides an import name: a known one, else the same name."""
    same = canonicalize_name(top)
    candidates = [same, *map(canonicalize_name, DISTRIBUTIONS_BY_MODULE.get(top, ())), f"python-{same}", f"py{same}"]
    return next((candidate for candidate in candidates if candidate in known), canonicalize_name(_written(top, ())))


def _written(top: str, known: Iterable[str]) -> str:
    if known and (distribution := _distribution(top, known)) in known:
        return distribution
    return DISTRIBUTIONS_BY_MODULE.get(top, (top,))[0]


def _files_of_tests(tree: SourceTree, test_paths: tuple[str, ...]) -> list[str]:
    """Test files, their conftest files, and the helpers that they import."""
    inside = [path for path in tree.under(list(test_paths)) if path.endswith(".py")]
    files = dict.fromkeys(test_files_under(tree, test_paths))
    files |= dict.fromkeys(
        path for path in tree if path == "conftest.py" or (path in inside and path.endswith("/conftest.py"))
    )
    waiting = [*files]
    while waiting:
        source = tree.files[waiting.pop()]
        words = {word for name in (*imports_in(source).needed, *_relative(source)) for word in name.split(".")}
        for path in inside:
            if path not in files and path.removesuffix("/__init__.py").rpartition("/")[2].removesuffix(".py") in words:
                files[path] = None
                waiting.append(path)
    return [*files]


def _relative(source: bytes) -> Iterator[str]:
    module = parse_or_none(source)
    for node in module.body if module else []:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def _own_names(tree: SourceTree, packages: PackagePaths, test_paths: tuple[str, ...]) -> set[str]:
    """Import names of the project itself: its packages, top-level modules, and modules among the tests."""
    own = {*packages, "__main__", "__future__"}
    own |= {path.partition("/")[0].removesuffix(".py") for path in tree if path.endswith(".py")}
    for path in tree:
        if path.endswith(".py") and is_under(path, list(test_paths)):
            own.update(part.removesuffix(".py") for part in path.split("/"))
    return own


def _plugins(tree: SourceTree, files: list[str], offered: frozenset[str]) -> Iterator[str]:
    """The pytest plugins that define the fixtures, marks and settings in use."""
    words, defined = set(pytest_settings(tree)), set[str]()
    for path in files:
        for kind, word in _words(tree.files[path]):
            (defined if kind == "fixture" else words).add(word)
    for word in sorted(words - defined):
        if plugin := next((candidate for candidate in PLUGINS_BY_WORD.get(word, ()) if candidate in offered), None):
            yield plugin
        elif word in PLUGINS_BY_WORD and word not in AMBIGUOUS_WORDS:
            yield PLUGINS_BY_WORD[word][0]
    required = pytest_settings(tree).get("required_plugins", "")
    yield from (
        canonicalize_name(requirement.name) for part in required.split() if (requirement := parse_requirement(part))
    )


def _words(source: bytes) -> Iterator[tuple[str, str]]:
    module = parse_or_none(source)
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_fixture = any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
            if is_fixture:
                yield "fixture", node.name
            if is_fixture or node.name.startswith("test"):
                yield from (("used", argument.arg) for argument in [*node.args.args, *node.args.kwonlyargs])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark":
            yield "used", f"mark.{node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "usefixtures":
            yield from (
                ("used", str(decorator.value)) for decorator in node.args if isinstance(decorator, ast.Constant)
            )
