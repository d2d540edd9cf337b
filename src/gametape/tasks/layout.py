"""Paths inside a task directory, and the names of files that are never part of a task."""

WORKSPACE_DIRECTORY = "environment/workspace"
"""The agent's starting tree."""

SUITE_DIRECTORY = "tests/suite"
"""The pristine tests, held-out ones included, at the paths they have in the workspace."""

SOLUTION_DIRECTORY = "solution/files"
"""Every file that the reference adds or changes, whole."""

DELETED_FILE = "solution/deleted.txt"
"""The files that the reference removes, one a line."""

VCS_DIRECTORIES = (".git", ".hg", ".svn")
CACHE_DIRECTORIES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
"""Directories that tools leave behind in a task directory. They are never part of the task."""


def is_cache_file(path: str) -> bool:
    """Whether a relative path is a tool's leftover: bytecode, or anything in a cache directory."""
    return path.endswith(".pyc") or any(part in CACHE_DIRECTORIES for part in path.split("/"))
