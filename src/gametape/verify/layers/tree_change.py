"""The difference of two trees in lines of code; comments, docstrings and blank lines do not count."""

import difflib
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree
from gametape.verify.static_analysis.python_source import code_lines, is_python, stripped_lines

_MOST_COMPARISONS = 4_000_000


@dataclass(frozen=True)
class FileChange:
    """How one file differs."""

    written: frozenset[int]
    """Lines of code that were added or changed, numbered in the new file."""
    removed: int
    """How many lines of code of the old file are gone or changed."""


@dataclass(frozen=True)
class TreeChange:
    """How two trees differ, by file; files that are the same are not listed."""

    files: dict[str, FileChange]

    @property
    def lines_written(self) -> int:
        """How many lines of code were added or changed."""
        return sum(len(file.written) for file in self.files.values())

    @property
    def size(self) -> int:
        return self.lines_written + sum(file.removed for file in self.files.values())

    def lines(self, path: str) -> frozenset[int]:
        return self.files[path].written if path in self.files else frozenset()


def compare_trees(old: SourceTree, new: SourceTree) -> TreeChange:
    paths = sorted({*old.files, *new.files})
    changed = [path for path in paths if old.files.get(path) != new.files.get(path)]
    return TreeChange({path: _compare(path, old.files.get(path, b""), new.files.get(path, b"")) for path in changed})


def _compare(path: str, old: bytes, new: bytes) -> FileChange:
    gone, written = _differing(stripped_lines(old), stripped_lines(new))
    return FileChange(written & _counted(path, new), len(gone & _counted(path, old)))


def _counted(path: str, content: bytes) -> frozenset[int]:
    if is_python(path):
        return code_lines(content)
    return frozenset(number for number, line in enumerate(stripped_lines(content), 1) if line)


def _differing(old: list[str], new: list[str]) -> tuple[frozenset[int], frozenset[int]]:
    """Numbers of the lines on either side that have no match on the other.

    Of texts too long to compare, everything between the common beginning and end differs.
    """
    shorter = min(len(old), len(new))
    first = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    rest = shorter - first
    last = next((index for index in range(rest) if old[-1 - index] != new[-1 - index]), rest)
    left, right = old[first : len(old) - last], new[first : len(new) - last]
    gone, written = set(range(len(left))), set(range(len(right)))
    if len(left) * len(right) <= _MOST_COMPARISONS:
        for old_start, new_start, length in difflib.SequenceMatcher(
            None, left, right, autojunk=False
        ).get_matching_blocks():
            gone.difference_update(range(old_start, old_start + length))
            written.difference_update(range(new_start, new_start + length))
    return frozenset(first + index + 1 for index in gone), frozenset(first + index + 1 for index in written)
