"""A small code base that is mined by these tests, and what it takes to look it over."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from gametape.record.source_tree import SourceTree
from gametape.tasks.dependency_env.build import DependencyEnv, build_dependency_env
from gametape.tasks.mining.baseline import SuiteBaseline, establish_baseline
from gametape.tasks.mining.project_layout.detection import find_project
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.project import Project

PYPROJECT = "[project]\nname = 'shelf'\nversion = '1.2'\n"

WORDS = '''
"""Words on shelves."""


def slug(text):
    """Letters and digits, joined by dashes."""
    parts = _parts(text.lower())
    joined = "-".join(part for part in parts if part)
    return joined.strip("-")


def initials(text):
    """The first letter of every word."""
    letters = []
    for part in _parts(text):
        if part:
            letters.append(part[0].upper())
    return ".".join(letters)


def _parts(text):
    return "".join(one if one.isalnum() else " " for one in text).split(" ")


def wrapped(text, width):
    """Lines of at most so many characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines
'''

SUMS = '''
"""Numbers of shelves."""


def total(values, start=0):
    """All of them together."""
    result = start
    for value in values:
        result = result + value
    return result


def spread(values):
    """From the least to the greatest."""
    if not values:
        raise ValueError("nothing to measure")
    return max(values) - min(values)


def ranked(values, key=None):
    """Each with its place, the greatest first."""
    ordered = sorted(values, key=key, reverse=True)
    return [(place + 1, value) for place, value in enumerate(ordered)]
'''

TEST_WORDS = """
import pytest

from shelf.words import initials, slug, wrapped


def test_slug_joins():
    assert slug("Red Book") == "red-book"


def test_slug_drops_signs():
    assert slug("a & b!") == "a-b"


def test_slug_of_nothing():
    assert slug("") == ""


def test_initials():
    assert initials("ann brown") == "A.B"


def test_initials_of_one():
    assert initials("ann") == "A"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [("a b", 1, ["a", "b"]), ("a b", 3, ["a b"]), ("", 4, [])],
)
def test_wrapped(text, width, lines):
    assert wrapped(text, width) == lines


def test_wrapped_long():
    assert wrapped("one two three", 7) == ["one two", "three"]
"""

TEST_SUMS = """
import pytest

from shelf.sums import ranked, spread, total


def test_total():
    assert total([1, 2]) == 3


def test_total_of_nothing():
    assert total([]) == 0


def test_total_from():
    assert total([1], start=4) == 5


def test_spread():
    assert spread([3, 9, 4]) == 6


def test_spread_of_nothing():
    with pytest.raises(ValueError, match="nothing to measure"):
        spread([])


def test_ranked():
    assert ranked([1, 5]) == [(1, 5), (2, 1)]


def test_ranked_by_key():
    assert ranked(["aa", "b"], key=len) == [(1, "aa"), (2, "b")]
"""

SHELF = {
    "pyproject.toml": PYPROJECT,
    "README.md": "# Shelf\n\nWords and numbers of shelves.\n",
    "shelf/__init__.py": "",
    "shelf/words.py": WORDS,
    "shelf/sums.py": SUMS,
    "tests/test_words.py": TEST_WORDS,
    "tests/test_sums.py": TEST_SUMS,
}
"""Six features in two files, reached by sixteen tests."""


def tree_of(files: Mapping[str, str]) -> SourceTree:
    return SourceTree({path: textwrap.dedent(text).lstrip("\n").encode() for path, text in files.items()})


def project_of(files: Mapping[str, str]) -> Project:
    return find_project(tree_of(files))


def shelf(**changes: str) -> dict[str, str]:
    """The small code base with some files added or replaced; `__` in a name stands for `/`, and `.py` goes without
    saying."""
    return {**SHELF, **{f"{name.replace('__', '/')}.py": text for name, text in changes.items()}}


def around(text: str, **more: str) -> dict[str, str]:
    """A code base of one function around tests that matter."""
    return {
        "pyproject.toml": PYPROJECT,
        "shelf/__init__.py": "def twice(value):\n    result = value + value\n    return result\n",
        "tests/test_it.py": text,
        **{f"{name.replace('__', '/')}.py": other for name, other in more.items()},
    }


def environment(home: Path) -> DependencyEnv:
    return build_dependency_env(project_of(SHELF), home, lambda _: None)


def site_of(files: Mapping[str, str], interpreter: Path) -> ProjectRunner:
    return ProjectRunner(project_of(files), interpreter, jobs=2)


def baseline_of(files: Mapping[str, str], interpreter: Path) -> SuiteBaseline:
    return establish_baseline(site_of(files, interpreter), seed=0)
