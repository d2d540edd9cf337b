"""Detect where a project has its packages, its tests and its requirements."""

import re
from collections.abc import Iterator

from gametape.core.errors import BadInput
from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.source import parse
from gametape.tasks.mining.project_layout.declared_metadata import read_declared_metadata
from gametape.tasks.mining.project_layout.module_imports import imports_in, parse_or_none
from gametape.tasks.mining.project_layout.packages import PackagePaths, find_packages, import_root
from gametape.tasks.mining.project_layout.requirements import project_requirements, test_requirements
from gametape.tasks.mining.project_layout.source_reader import is_metadata_file
from gametape.tasks.mining.project_layout.suite_discovery import find_test_paths, test_files_under
from gametape.tasks.project import Project, ProjectRefused

_VERSION = re.compile(rb"^(?:__version__|VERSION|version)(?:: *\w+)? *= *['\"](\d[^'\"\n]*)['\"]", re.MULTILINE)
_HINT = re.compile(r"(-v?\d[^/]*)?(\.(tar(\.\w+)?|tgz|zip))?$")
"""What follows the name of a project in the name of its archive."""
_OLD = re.compile(r"(^|[^a-z])(py|python)_?2([^0-9]|$)")


def find_project(tree: SourceTree, tests: str | None = None, name_hint: str = "") -> Project:
    """Find the parts of a project. Raises `ProjectRefused` if there is nothing to mine, and says what was searched.

    `tests` is a path of the tests, relative to the tree; `name_hint` names a project without a name, for example after
    its directory or archive.
    """
    if not any(path.endswith(".py") for path in tree):
        raise ProjectRefused(
            "empty", f"there is no Python in it ({len(tree.files)} files); give the root of a code base"
        )
    declared = read_declared_metadata(tree)
    bare = tree.without({path for path in tree if is_metadata_file(path)})
    given = _given(bare, tests)
    name = declared.name or _HINT.sub("", name_hint)
    packages = find_packages(bare, declared, name)
    if not packages:
        raise ProjectRefused("no_package", _no_package(name))
    sources = tuple(sorted(packages.values()))
    test_paths = given or find_test_paths(bare, sources)
    if not test_files_under(bare, test_paths):
        raise ProjectRefused("no_tests", _no_tests(tests))
    _refuse_unreadable(bare, sources, test_paths)
    name = name or sources[0].rpartition("/")[2].removesuffix(".py")
    required = project_requirements(bare, declared)
    return Project(
        name=name,
        version=declared.version or _version(bare, sources) or "0",
        tree=bare,
        source_paths=sources,
        test_paths=test_paths,
        import_roots=_import_roots(bare, packages, test_paths),
        requirements=required,
        test_requirements=test_requirements(bare, declared, name, packages, test_paths, required),
        metadata=declared.pkg_info_text,
    )


def _given(tree: SourceTree, tests: str | None) -> tuple[str, ...]:
    if tests is None:
        return ()
    plain = "/".join(part for part in tests.split("/") if part not in ("", "."))
    if tests.startswith("/") or not plain or ".." in plain.split("/") or not tree.under([plain]).files:
        raise BadInput(f"{tests}: no such file or directory in the code base; give a path relative to its root")
    return (plain,)


def _no_package(name: str) -> str:
    called = f"a package called like {name}, " if name else ""
    return (
        f"no package was found: looked for what pyproject.toml, setup.cfg and setup.py declare, {called}"
        "and for any other at the top and in src/; declare it, or give the directory that holds it"
    )


def _no_tests(tests: str | None) -> str:
    if tests is not None:
        return f"no tests were found in {tests}: no test_*.py, no *_test.py, no unittest.TestCase"
    return (
        "no tests were found: looked for test_*.py and *_test.py, and for unittest.TestCase in tests/, test/ and "
        "testing/, at the top and in the package; say with --tests where they lie"
    )


def _refuse_unreadable(tree: SourceTree, sources: tuple[str, ...], test_paths: tuple[str, ...]) -> None:
    for path in tree.under(list(sources)):
        if path.endswith(".py") and parse_or_none(tree.files[path]) is None:
            if is_under(path, list(test_paths)) or _is_data(tree, path, sources) or _OLD.search(path):
                continue
            raise ProjectRefused(
                "syntax_error", f"{path}: {_fault(tree.files[path])}; mending it comes before mining it"
            )


def _is_data(tree: SourceTree, path: str, sources: tuple[str, ...]) -> bool:
    """Whether a file below a regular package is in none of its subpackages: a template, an example."""
    top = next(source for source in sources if is_under(path, [source]))
    between = path.removeprefix(top).strip("/").split("/")[:-1]
    levels = [top, *("/".join([top, *between[: count + 1]]) for count in range(len(between)))]
    inits = [f"{level}/__init__.py" in tree for level in levels]
    return inits[0] and not all(inits)


def _fault(source: bytes) -> str:
    try:
        parse(source)
    except SyntaxError as error:
        if error.lineno is None:
            return f"it cannot be parsed ({error.msg})"
        return f"line {error.lineno} is not Python that can be parsed here ({error.msg})"
    return "it cannot be parsed"


def _import_roots(tree: SourceTree, packages: PackagePaths, test_paths: tuple[str, ...]) -> tuple[str, ...]:
    """The directories that imports of the packages start from, and the top directory if tests import modules of it."""
    roots = dict.fromkeys(import_root(path) for path in sorted(packages.values()))
    tests = tree.under(list(test_paths))
    wanted = {top for path in tests if path.endswith(".py") for top in imports_in(tests.files[path]).top_level} - set(
        packages
    )
    tops = {path.partition("/")[0].removesuffix(".py") for path in tree if path.endswith(".py")}
    return tuple(roots) if not wanted & tops or "." in roots else (*roots, ".")


def _version(tree: SourceTree, sources: tuple[str, ...]) -> str:
    return next(_versions(tree, sources), "")


def _versions(tree: SourceTree, sources: tuple[str, ...]) -> Iterator[str]:
    inside = [path for source in sources for path in (source, f"{source}/__init__.py") if path in tree]
    about = [path for path in tree.under(list(sources)) if re.search(r"_*(version|about)_*\.py$", path)]
    for path in (*inside, *about):
        if match := _VERSION.search(tree.files[path]):
            yield match[1].decode(errors="replace")
