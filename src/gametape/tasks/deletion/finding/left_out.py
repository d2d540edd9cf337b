"""What of a code base is no part of it: history, caches, environments, build results. The answer can lie in any."""

import fnmatch
from pathlib import PurePosixPath

from gametape.tasks.layout import CACHES, HISTORIES
from gametape.verify.tree import Tree, is_under

_DIRECTORIES = (
    *HISTORIES,
    *CACHES,
    *(".bzr", "CVS", "_darcs", ".jj", ".sl", ".pijul", ".history"),
    *(".tox", ".nox", ".venv", "__pypackages__", ".eggs", "node_modules", ".pixi", ".conda", ".direnv"),
    *(".cache", ".pytype", ".pyre", ".dmypy", ".ropeproject", ".ipynb_checkpoints", ".benchmarks", ".testmondata"),
    *(".import_linter_cache", ".grimp_cache", ".scrapy", ".sass-cache", ".parcel-cache", ".turbo", ".pdm-build"),
    *("htmlcov", ".coverage_html", "cython_debug", ".idea", ".vscode", ".vs", ".fleet", ".settings"),
    *("*.egg-info", "*.dist-info", "*.egg", "*.dSYM"),
)
"""By name, wherever they lie."""

_FILES = (
    *HISTORIES,  # of a submodule it is a file, which says where the history lies
    *("*.pyc", "*.pyo", "*$py.class", "*.so", "*.pyd", "*.dylib", "*.o", "*.obj", "*.egg", "*.whl"),
    *(".coverage", ".coverage.*", "coverage.xml", "*,cover", "*.gcda", "*.gcno", ".dmypy.json", ".testmondata*"),
    *("*.orig", "*.rej", "*~", "*.swp", "*.swo", ".DS_Store", "Thumbs.db", "__editable__.*"),
)
_RESULTS = ("build", "dist", "wheelhouse", "_skbuild", "sdist")
"""Build results, if they lie at the top and are no packages."""

_LABELS = ("PKG-INFO", "top_level.txt", "requires.txt")


def is_left_out(path: str, directory: bool = False) -> bool:
    """Whether a path, or a directory above it, is no part of the code base. Labels (`is_label`) are not left out."""
    parts = PurePosixPath(path).parts
    above = parts if directory else parts[:-1]
    if any(_named(part, _DIRECTORIES) for part in above):
        return not (is_label(path) or (directory and parts[-1].endswith(".egg-info")))
    return not directory and _named(parts[-1], _FILES) and parts[-1] != ".coveragerc"


def is_label(path: str) -> bool:
    """Whether a file is what a source distribution says about itself: `PKG-INFO`, or a text of its `.egg-info`."""
    parts = PurePosixPath(path).parts
    if parts[-1] not in _LABELS:
        return False
    inner = [part for part in parts[:-1] if _named(part, _DIRECTORIES)]
    return (len(parts) == 1 and path == "PKG-INFO") or (
        len(parts) in (2, 3) and inner == [parts[-2]] and parts[-2].endswith(".egg-info")
    )


def without_environments(tree: Tree) -> Tree:
    """Leave out virtual environments, and build results that lie at the top."""
    environments = [path.rpartition("/")[0] for path in tree if path.endswith("/pyvenv.cfg")]
    results = [name for name in _RESULTS if f"{name}/__init__.py" not in tree]
    gone = [*environments, *results]
    return tree.without({path for path in tree if "/" in path and is_under(path, gone)})


def _named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
