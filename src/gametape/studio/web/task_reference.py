"""What was deleted to make a task: what the reference puts back, read from the task's directory where it is at hand.

Only directories `tasks` beside a run or above it are looked into, within the directory of runs, and no link is
followed. Of the reference only source files are shown: no test, held out or not, and nothing of an evaluation.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from gametape.record.regular_file import read_regular
from gametape.studio.page import printable_text
from gametape.studio.step_view import mapping
from gametape.studio.web.catalogue import HOME_PREFIX, FoundRun, RunCatalogue

_PATCH = ("solution", "reference.patch")
_NAME = re.compile(r"[\w.+-]{1,200}", re.ASCII)
_MOST_BYTES = 256 << 10
_MOST_LINES = 400


def deleted_lines(catalogue: RunCatalogue, run: FoundRun, task: str) -> list[str]:
    """The part of the reference's patch that is about sources, as lines; none where the task is not at hand."""
    if run.place.kind not in ("training", "attempt") or run.name.startswith(HOME_PREFIX):
        return []
    directory = _find(catalogue.runs, run.place.path, task)
    if directory is None:
        return []
    try:
        table = tomllib.loads(read_regular(directory / "task.toml", _MOST_BYTES).decode())
        patch = read_regular(directory.joinpath(*_PATCH), _MOST_BYTES).decode()
    except (OSError, ValueError):
        return []
    settings = mapping(mapping(table.get("metadata")).get("gametape"))
    tests = [*_paths(settings.get("test_paths")), "tests"]
    lines = [line for part in _files(patch) if _is_source(part, _paths(settings.get("source_paths")), tests)
             for line in part]  # fmt: skip
    return [printable_text(line) for line in lines[:_MOST_LINES]]


def _find(root: Path, path: Path, task: str) -> Path | None:
    if not _NAME.fullmatch(task) or task in (".", ".."):
        return None
    here = path
    while here.is_relative_to(root):
        found = here / "tasks" / task
        parts = (found.parent, found, found / "task.toml", found / _PATCH[0], found.joinpath(*_PATCH))
        if parts[-1].is_file() and not any(part.is_symlink() for part in parts):
            return found
        here = here.parent
    return None


def _files(patch: str) -> list[list[str]]:
    """The lines of a patch by the file that they are about, without git's own lines."""
    parts: list[list[str]] = []
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            parts.append([])
        elif parts and (parts[-1] or line.startswith("--- ")):
            parts[-1].append(line)
    return [part for part in parts if len(part) > 2]


def _is_source(part: Sequence[str], sources: Sequence[str], tests: Sequence[str]) -> bool:
    """Whether both names of the file are below the sources, and neither is below the tests or looks like one."""
    names = [line[4:].split("\t")[0] for line in part[:2]]
    paths = [PurePosixPath(name.partition("/")[2]) for name in names if name != "/dev/null"]
    return bool(paths) and all(
        any(path.is_relative_to(source) for source in sources)
        and not any(path.is_relative_to(test) for test in tests)
        and not path.name.startswith(("test_", "conftest"))
        and not path.stem.endswith("_test")
        for path in paths
    )


def _paths(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
