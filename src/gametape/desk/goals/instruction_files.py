"""Instructions below the first ones: what a shell or `make` sources, includes, or starts with instructions of its own.

A shell library, a list of sources, the Makefile of a directory and a launcher are read as the check is read, and are
often work all the same. What tells them from the first instructions is who reads them, and how.
"""

import re
from collections.abc import Iterable

from gametape.desk.goals.command_trace import CommandTrace
from gametape.record.source_tree import SourceTree

_FUNCTION = re.compile(rb"^\s*(function\s+)?[\w:.-]+\s*\(\s*\)\s*(\{|$)", re.MULTILINE)
_CHECKS_SOMETHING = re.compile(
    rb"\[|\b(test|diff|cmp|grep|exit|return|set|trap|eval|alias|unalias|true|false|kill)\b|\|\||&&|^\s*[-:]"
    rb"|\b(SHELL|MAKEFLAGS|PATH|PYTHONPATH|LD_\w+|BASH_ENV|ENV)\b"
)
"""Words of a line in a script or a Makefile that decides, or that changes how others decide."""


def lower_instructions(run: CommandTrace) -> set[str]:
    """The scripts and Makefiles that instructions start, what `make` includes, and libraries of shell functions."""
    found: set[str] = set()
    firsts = {number: path for number in range(len(run.trace.processes)) if (path := _first(run, number))}
    for number, first in firsts.items():
        above = {firsts[other] for other in run.ancestors(number) if other in firsts}
        if above and first not in above:
            found.add(first)
    for path, numbers in run.read_by.items():
        own = {number for number in numbers if run.runs_instructions(number) and firsts.get(number) not in (None, path)}
        if own and path not in firsts.values():
            libraries = [number for number in own if not run.is_shell(number) or _FUNCTION.search(run.tree.files[path])]
            found |= {path} if libraries else set()
    return found - {path for number, path in firsts.items() if not any(one in firsts for one in run.ancestors(number))}


def _first(run: CommandTrace, number: int) -> str | None:
    """The file with which a shell or `make` begins."""
    if not run.runs_instructions(number):
        return None
    if run.is_shell(number):
        return run.scripts.get(number)
    return next((path for path, numbers in run.read_by.items() if number in numbers), None)


def same_checks(paths: Iterable[str], before: SourceTree, after: SourceTree) -> set[str]:
    """The files of which every line that tests something, or that changes how others are tested, is the same."""
    return {path for path in paths if path in after and _lines(before.files[path]) == _lines(after.files[path])}


def tests_nothing(content: bytes) -> bool:
    """Whether no line of some instructions tests anything."""
    return not _lines(content)


def _lines(content: bytes) -> list[bytes]:
    return [line.strip() for line in content.splitlines() if _CHECKS_SOMETHING.search(line)]
