"""Where things lie in a task directory."""

WORKSPACE_DIRECTORY = "environment/workspace"
"""The agent's starting tree."""

SUITE_DIRECTORY = "tests/suite"
"""The pristine tests, held-out ones included, at the paths they have in the workspace."""

SOLUTION_DIRECTORY = "solution/files"
"""Every file that the reference adds or changes, whole."""

DELETED_FILE = "solution/deleted.txt"
"""The files it removes, one to a line."""

VCS_DIRECTORIES = (".git", ".hg", ".svn")
CACHE_DIRECTORIES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
"""What tools leave behind when somebody works in a task directory. It is never part of the task."""
