"""Which packages and modules are the project's own, and the directories their imports start from."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gametape.tasks.deletion.finding.declared import Declared, FindPackages, lines, table, texts
from gametape.tasks.deletion.finding.suites import ASIDE, TEST_DIRECTORIES, is_test_file
from gametape.verify.tree import Tree

_ROOTS = ("src", ".", "lib", "python", "source", "Lib")
_NOT_MODULES = frozenset(
    {
        *("setup", "conftest", "conf", "noxfile", "tasks", "fabfile", "versioneer", "ez_setup", "distribute_setup"),
        *("manage", "build", "bootstrap", "release", "runtests", "run_tests", "wsgi", "dodo", "hatch_build", "waf"),
        *("toxfile", "pavement", "test", "tests", "benchmark", "bench", "example", "demo", "gulpfile", "_custom_build"),
    }
)

Places = dict[str, str]
"""By import name, the path of a package or module."""


def find_packages(tree: Tree, declared: Declared, name: str) -> Places:
    """By what is declared, else by the distribution's name, else everything that can be imported and is not aside.

    A namespace package counts under its topmost name.
    """
    roots = _roots(tree, declared)
    for names in (declared.top_level, *_declared_names(tree, declared), _names_for(name)):
        if found := _located(tree, dict.fromkeys(one for one in names if not _is_test(one)), roots):
            return found
    for root in roots:
        likely = {one: path for one, path in _importable(tree, root).items() if not _is_aside(one)}
        regular = {one: path for one, path in likely.items() if path in tree or f"{path}/__init__.py" in tree}
        if found := {one: path for one, path in (regular or likely).items() if not _is_all_tests(tree, path)}:
            return found
    return {}


def _is_all_tests(tree: Tree, path: str) -> bool:
    """Whether a directory of some other name holds tests: all modules right in it are called so."""
    inside = (one.removeprefix(f"{path}/") for one in tree if one.startswith(f"{path}/") and one.endswith(".py"))
    modules = [name for name in inside if "/" not in name and name not in ("__init__.py", "conftest.py")]
    return bool(modules) and all(map(is_test_file, modules))


def import_root(path: str) -> str:
    """The directory that the import of a package or module starts from."""
    return path.rpartition("/")[0] or "."


def _located(tree: Tree, names: Iterable[str], roots: tuple[str, ...]) -> Places:
    """Where these names lie; the first root that has one counts, and a directory with Python in it before a module."""
    found: Places = {}
    for name in names:
        for root in roots:
            if path := _importable(tree, root).get(name.split(".")[0].split("/")[0]):
                found.setdefault(name.split(".")[0].split("/")[0], path)
                break
    return found


def _importable(tree: Tree, root: str) -> Places:
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
    return name.lower() in ASIDE or name in _NOT_MODULES or _is_test(name) or name.startswith("_")


def _names_for(name: str) -> list[str]:
    """What a distribution of this name may call its package."""
    plain = re.sub(r"[-_.]+", "_", name)
    shorter = [re.sub(r"^(python|py)_?|_?(python|py)$", "", plain, flags=re.IGNORECASE)]
    spaced = name.split(".", maxsplit=1)[0] if "." in name else ""
    every = [plain, *shorter, spaced, f"py{plain}", f"_{plain}"]
    return [one for text in every if text for one in (text, text.lower())]


def _roots(tree: Tree, declared: Declared) -> tuple[str, ...]:
    setuptools = table(declared.pyproject, "tool", "setuptools")
    package_dir = {**table(setuptools, "package-dir"), **table(declared.setup_py, "package_dir")}
    given = [package_dir.get("", "")]
    for line in lines(declared.setup_cfg.get("options", {}).get("package_dir", "")):
        key, _, value = line.partition("=")
        given += [value.strip()] if not key.strip() else []
    given += [where for where, _, _ in _finds(declared)]
    given += [item.get("from", "") for item in _poetry_packages(declared)]
    given += [path.rpartition("/")[0] for path in _hatch_packages(declared) if "/" in path]
    plain = [str(root).removeprefix("./").strip("/") or "." for root in given if root]
    is_there = {root: any(path.startswith(f"{root}/") for path in tree) or root == "." for root in (*plain, *_ROOTS)}
    regular = {root for root in is_there if f"{root}/__init__.py" not in tree}
    return tuple(root for root in dict.fromkeys((*plain, *_ROOTS)) if is_there[root] and root in regular)


def _declared_names(tree: Tree, declared: Declared) -> Iterator[list[str]]:
    """Lists of import names, the surest first."""
    setuptools = table(declared.pyproject, "tool", "setuptools")
    options = declared.setup_cfg.get("options", {})
    packages = [*texts(setuptools.get("packages")), *texts(declared.setup_py.get("packages"))]
    packages += [line for line in _listed(options.get("packages", "")) if not line.startswith("find")]
    modules = [*texts(setuptools.get("py-modules")), *texts(declared.setup_py.get("py_modules"))]
    modules += _listed(options.get("py_modules", ""))
    found = [name for where, include, exclude in _finds(declared) for name in _matched(tree, where, include, exclude)]
    yield [*packages, *modules, *found]
    yield [str(item.get("include", "")).partition("/")[0] for item in _poetry_packages(declared)]
    flit = table(declared.pyproject, "tool", "flit")
    yield [*texts(table(flit, "module").get("name")), *texts(table(flit, "metadata").get("module"))]
    yield [path.rpartition("/")[2] for path in _hatch_packages(declared)]
    backend = table(declared.pyproject, "tool", "uv", "build-backend")
    yield texts(backend.get("module-name"))
    yield texts(declared.project.get("import-names"))


def _listed(text: str) -> list[str]:
    return [name.strip() for line in lines(text) for name in line.split(",") if name.strip()]


def _finds(declared: Declared) -> list[tuple[str, list[str], list[str]]]:
    """Every `find` of packages that is declared: where, and which names are in and out."""
    found: list[tuple[str, list[str], list[str]]] = []
    find = table(declared.pyproject, "tool", "setuptools", "packages", "find")
    if find:
        for where in texts(find.get("where")) or ["."]:
            found.append((where, texts(find.get("include")) or ["*"], texts(find.get("exclude"))))
    options = declared.setup_cfg.get("options", {})
    if options.get("packages", "").strip().startswith("find"):
        section = declared.setup_cfg.get("options.packages.find", {})
        include, exclude = _listed(section.get("include", "")), _listed(section.get("exclude", ""))
        found.append((section.get("where", ".").strip() or ".", include or ["*"], exclude))
    given = declared.setup_py.get("packages")
    if isinstance(given, FindPackages):
        found.append((given.where, list(given.include), list(given.exclude)))
    return found


def _matched(tree: Tree, where: str, include: list[str], exclude: list[str]) -> list[str]:
    root = where.removeprefix("./").strip("/") or "."
    found = []
    for name, path in _importable(tree, root).items():
        is_in = any(fnmatch.fnmatchcase(name, pattern.split(".")[0]) for pattern in include)
        is_out = any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)
        if is_in and not is_out and not path.endswith(".py") and (not _is_aside(name) or include != ["*"]):
            found.append(name)
    return found


def _poetry_packages(declared: Declared) -> list[Mapping[str, Any]]:
    given = declared.poetry.get("packages")
    return [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []


def _hatch_packages(declared: Declared) -> list[str]:
    build = table(declared.pyproject, "tool", "hatch", "build")
    wheel = table(build, "targets", "wheel")
    given = [*texts(wheel.get("packages")), *texts(wheel.get("only-include")), *texts(build.get("packages"))]
    return [path.strip("/") for path in given]
