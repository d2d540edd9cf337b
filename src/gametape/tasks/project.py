"""A Python project whose parts are located. It is here, apart from `mining`, because environments are built for it."""

from dataclasses import dataclass

from gametape.record.source_tree import SourceTree, is_under


@dataclass(frozen=True)
class Project:
    """The files of a project that an agent may see, and the paths of its parts, relative to the tree."""

    name: str
    """The distribution's name."""
    version: str
    tree: SourceTree
    """Contains no history, caches, build results, environments or installed copies."""
    source_paths: tuple[str, ...]
    """The package directories or modules, relative: `src/pkg`, `pkg`, `module.py`."""
    test_paths: tuple[str, ...]
    """Directories or files with tests; they may be inside `source_paths`."""
    import_roots: tuple[str, ...]
    """Directories that imports start from: `src`, `.`."""
    requirements: tuple[str, ...] = ()
    """Requirement lines of the package itself."""
    test_requirements: tuple[str, ...] = ()
    """Requirement lines of its tests, without pytest."""
    metadata: str = ""
    """The text of its PKG-INFO, or nothing."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The names under which the sources are imported."""
        return tuple(path.rstrip("/").rsplit("/", 1)[-1].removesuffix(".py") for path in self.source_paths)

    def is_source(self, path: str) -> bool:
        """Whether a file is one of the sources; tests inside the package are not."""
        return is_under(path, [*self.source_paths]) and not is_under(path, [*self.test_paths])


class ProjectRefused(Exception):
    """This project cannot be mined. `reason` is a word for tables; the message is for a person."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
