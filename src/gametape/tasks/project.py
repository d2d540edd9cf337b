"""A code base as the miner sees it, once somebody has looked where everything lies."""

from dataclasses import dataclass

from gametape.record.source_tree import SourceTree


@dataclass(frozen=True)
class Project:
    """Everything of a code base that an agent may see, and where its parts lie. Paths are relative to the tree."""

    name: str
    """The distribution's name."""
    version: str
    tree: SourceTree
    """Without history, caches, build results, environments and installed copies."""
    source_paths: tuple[str, ...]
    """The package directories or modules, relative: `src/pkg`, `pkg`, `module.py`."""
    test_paths: tuple[str, ...]
    """Directories or files that hold tests; they may lie inside `source_paths`."""
    import_roots: tuple[str, ...]
    """Directories imports start from: `src`, `.`."""
    requirements: tuple[str, ...] = ()
    """What it needs at run time, as requirement lines."""
    test_requirements: tuple[str, ...] = ()
    """What its tests need beside pytest."""
    metadata: str = ""
    """The text of its METADATA, for programs that ask for their own version. Holds no code."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The names under which the sources are imported."""
        return tuple(path.rstrip("/").rsplit("/", 1)[-1].removesuffix(".py") for path in self.source_paths)


class ProjectRefused(Exception):
    """This code base cannot be mined. `reason` is a word for tables, the message says it to a person."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
