"""Where things lie in a task directory."""

WORKSPACE = "environment/workspace"
"""The agent's starting tree."""

SUITE = "tests/suite"
"""The pristine tests, held-out ones included, at the paths they have in the workspace."""

SOLUTION = "solution/files"
"""Every file that the reference adds or changes, whole."""

DELETED = "solution/deleted.txt"
"""The files it removes, one to a line."""

HISTORIES = (".git", ".hg", ".svn")
CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
"""What tools leave behind when somebody works in a task directory. It is never part of the task."""
