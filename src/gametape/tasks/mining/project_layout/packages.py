"""Find the packages and modules of a project, and the directories that their imports start from."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.project_layout.declared_metadata import (
    DeclaredMetadata,
    FindPackagesCall,
    ini_lines,
    string_list,
    toml_table,
)
from gametape.tasks.mining.project_layout.suite_discovery import NON_SOURCE_DIRECTORIES, TEST_DIRECTORIES, is_test_file

_ROOTS = ("src", ".", "lib", "python", "source", "Lib")
_NOT_MODULES = frozenset(
    {
        *("setup", "conftest", "conf", "noxfile", "tasks", "fabfile", "versioneer", "ez_setup", "distribute_setup"),
        *("manage", "build", "bootstrap", "release", "runtests", "run_tests", "wsgi", "dodo", "hatch_build", "waf"),
        *("toxfile", "pavement", "test", "tests", "benchmark", "bench", "example", "demo", "gulpfile", "_custom_build"),
    }
)

PackagePaths = dict[str, str]
"""By import name: the path of a package or module."""


def find_packages(tree: SourceTree, declared: DeclaredMetadata, name: str) -> PackagePaths:
    """The declared packages, else those named like the distribution, else everything importable that is not tests,
    documentation or tooling. A namespace package counts under its topmost name."""
    roots = _roots(tree, declared)
    for names in (declared.top_level, *_declared_names(tree, declared), _names_for(name)):
        if paths := _located(tree, dict.fromkeys(candidate for candidate in names if not _is_test(candidate)), roots):
            return paths
    for root in roots:
        likely = {candidate: path for candidate, path in _importable(tree, root).items() if not _is_aside(candidate)}
        regular = {
            candidate: path for candidate, path in likely.items() if path in tree or f"{path}/__init__.py" in tree
        }
        if paths := {
            candidate: path for candidate, path in (regular or likely).items() if not _is_all_tests(tree, path)
        }:
            return paths
    return {}


def _is_all_tests(tree: SourceTree, path: str) -> bool:
    """Whether a directory contains only tests: all modules directly in it have names of tests."""
    inside = (file.removeprefix(f"{path}/") for file in tree if file.startswith(f"{path}/") and file.endswith(".py"))
    modules = [name for name in inside if "/" not in name and name not in ("__init__.py", "conftest.py")]
    return bool(modules) and all(map(is_test_file, modules))


def import_root(path: str) -> str:
    """The directory from which a package or module is imported."""
    return path.rpartition("/")[0] or "."


def _located(tree: SourceTree, names: Iterable[str], roots: tuple[str, ...]) -> PackagePaths:
    """The paths of these names, each in the first root that has it. A directory takes precedence over a module."""
    located: PackagePaths = {}
    for name in names:
        for root in roots:
            if path := _importable(tree, root).get(name.split(".")[0].split("/")[0]):
                located.setdefault(name.split(".")[0].split("/")[0], path)
                break
    return located


def _importable(tree: SourceTree, root: str) -> PackagePaths:
    prefix = "" if root == "." else f"{root}/"
    modules, packages = {}, {}
    for path in tree:
        if path.startswith(prefix) and path.endswith(".py"):
            top, _, below = path.removeprefix(prefix).partition("/")
            if below and top.isidentifier():
                packages[top] = prefix + top
            elif not below and top.removesuffix(".py").isidentifier():
                modules[top.removesuffix(".py")] = path
    regular = {name: path for name, path in packages.items() if f"{path}/__init__.py" in tree}
    return {**packages, **modules, **regular}


def _is_test(name: str) -> bool:
    top = name.partition(".")[0]
    return top in TEST_DIRECTORIES or top.startswith("test_") or top.endswith("_test")


def _is_aside(name: str) -> bool:
    return name.lower() in NON_SOURCE_DIRECTORIES or name in _NOT_MODULES or _is_test(name) or name.startswith("_")


def _names_for(name: str) -> list[str]:
    """Possible import names of a distribution."""
    plain = re.sub(r"[-_.]+", "_", name)
    shorter = [re.sub(r"^(python|py)_?|_?(python|py)$", "", plain, flags=re.IGNORECASE)]
    spaced = name.split(".", maxsplit=1)[0] if "." in name else ""
    every = [plain, *shorter, spaced, f"py{plain}", f"_{plain}"]
    return [variant for text in every if text for variant in (text, text.lower())]


def _roots(tree: SourceTree, declared: DeclaredMetadata) -> tuple[str, ...]:
    setuptools = toml_table(declared.pyproject, "tool", "setuptools")
    package_dir = {**toml_table(setuptools, "package-dir"), **toml_table(declared.setup_py, "package_dir")}
    given = [package_dir.get("", "")]
    for line in ini_lines(declared.setup_cfg.get("options", {}).get("package_dir", "")):
        key, _, value = line.partition("=")
        given += [value.strip()] if not key.strip() else []
    given += [where for where, _, _ in _finds(declared)]
    given += [item.get("from", "") for item in _poetry_packages(declared)]
    given += [path.rpartition("/")[0] for path in _hatch_packages(declared) if "/" in path]
    plain = [str(root).removeprefix("./").strip("/") or "." for root in given if root]
    is_there = {root: any(path.startswith(f"{root}/") for path in tree) or root == "." for root in (*plain, *_ROOTS)}
    regular = {root for root in is_there if f"{root}/__init__.py" not in tree}
    return tuple(root for root in dict.fromkeys((*plain, *_ROOTS)) if is_there[root] and root in regular)


def _declared_names(tree: SourceTree, declared: DeclaredMetadata) -> Iterator[list[str]]:
    """Lists of declared import names, the most reliable first."""
    setuptools = toml_table(declared.pyproject, "tool", "setuptools")
    options = declared.setup_cfg.get("options", {})
    packages = [*string_list(setuptools.get("packages")), *string_list(declared.setup_py.get("packages"))]
    packages += [line for line in _listed(options.get("packages", "")) if not line.startswith("find")]
    modules = [*string_list(setuptools.get("py-modules")), *string_list(declared.setup_py.get("py_modules"))]
    modules += _listed(options.get("py_modules", ""))
    matched = [name for where, include, exclude in _finds(declared) for name in _matched(tree, where, include, exclude)]
    yield [*packages, *modules, *matched]
    yield [str(item.get("include", "")).partition("/")[0] for item in _poetry_packages(declared)]
    flit = toml_table(declared.pyproject, "tool", "flit")
    yield [
        *string_list(toml_table(flit, "module").get("name")),
        *string_list(toml_table(flit, "metadata").get("module")),
    ]
    yield [path.rpartition("/")[2] for path in _hatch_packages(declared)]
    backend = toml_table(declared.pyproject, "tool", "uv", "build-backend")
    yield string_list(backend.get("module-name"))
    yield string_list(declared.project.get("import-names"))


def _listed(text: str) -> list[str]:
    return [name.strip() for line in ini_lines(text) for name in line.split(",") if name.strip()]


def _finds(declared: DeclaredMetadata) -> list[tuple[str, list[str], list[str]]]:
    """Every declared `find` of packages: where, included names, excluded names."""
    finds: list[tuple[str, list[str], list[str]]] = []
    find = toml_table(declared.pyproject, "tool", "setuptools", "packages", "find")
    if find:
        for where in string_list(find.get("where")) or ["."]:
            finds.append((where, string_list(find.get("include")) or ["*"], string_list(find.get("exclude"))))
    options = declared.setup_cfg.get("options", {})
    if options.get("packages", "").strip().startswith("find"):
        section = declared.setup_cfg.get("options.packages.find", {})
        include, exclude = _listed(section.get("include", "")), _listed(section.get("exclude", ""))
        finds.append((section.get("where", ".").strip() or ".", include or ["*"], exclude))
    given = declared.setup_py.get("packages")
    if isinstance(given, FindPackagesCall):
        finds.append((given.where, list(given.include), list(given.exclude)))
    return finds


def _matched(tree: SourceTree, where: str, include: list[str], exclude: list[str]) -> list[str]:
    root = where.removeprefix("./").strip("/") or "."
    names = []
    for name, path in _importable(tree, root).items():
        is_in = any(fnmatch.fnmatchcase(name, pattern.split(".")[0]) for pattern in include)
        is_out = any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)
        if is_in and not is_out and not path.endswith(".py") and (not _is_aside(name) or include != ["*"]):
            names.append(name)
    return names


def _poetry_packages(declared: DeclaredMetadata) -> list[Mapping[str, Any]]:
    given = declared.poetry.get("packages")
    return [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []


def _hatch_packages(declared: DeclaredMetadata) -> list[str]:
    build = toml_table(declared.pyproject, "tool", "hatch", "build")
    wheel = toml_table(build, "targets", "wheel")
    given = [
        *string_list(wheel.get("packages")),
        *string_list(wheel.get("only-include")),
        *string_list(build.get("packages")),
    ]
    return [path.strip("/") for path in given]
