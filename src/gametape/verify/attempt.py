"""What an agent left behind, as values: every rule and layer reads this and never the workspace itself."""

import functools
from dataclasses import dataclass

from gametape.verify.subject import Subject
from gametape.verify.tree import Tree


@dataclass(frozen=True)
class Refused:
    """Something below the declared sources that is not taken along."""

    path: str
    reason: str
    """One of: link, byte code, binary, path file, configuration, special file, too large, odd name."""


@dataclass(frozen=True)
class Attempt:
    """A workspace against the task it was given for."""

    subject: Subject
    sources: Tree
    """The exported sources: all that will be run."""
    workspace: Tree
    """Every regular file of the workspace that is not too large, for rules to look at; never run."""
    links: dict[str, str]
    """Symbolic links of the workspace and where they point."""
    refused: tuple[Refused, ...] = ()

    @functools.cached_property
    def written(self) -> list[str]:
        """Files of the workspace that the agent added or changed, sources included."""
        start = self.subject.start.files
        return sorted(path for path, content in self.workspace.files.items() if start.get(path) != content)

    @functools.cached_property
    def written_sources(self) -> list[str]:
        """Exported files that the agent added or changed."""
        start = self.subject.start.files
        return sorted(path for path, content in self.sources.files.items() if start.get(path) != content)

    @functools.cached_property
    def removed(self) -> list[str]:
        """Files of the starting tree that are gone."""
        return sorted(path for path in self.subject.start.files if path not in self.workspace.files)
