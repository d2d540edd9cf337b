"""Instructions below the first ones: what a shell or `make` sources, includes, or starts with instructions of its own.

A shell library, a list of sources, the Makefile of a directory and a launcher are read as the check is read, and are
often work all the same. What tells them from the first instructions is who reads them, and how.
"""

import difflib
import posixpath
import re

from gametape.desk.goals.command_trace import CommandTrace

_FUNCTION = re.compile(rb"^\s*(function\s+)?([\w:.-]+)\s*\(\s*\)\s*(\{|\(|$)", re.MULTILINE)
_LIBRARY = re.compile(r"\\|-l[\w+.-]+")
_FILE = re.compile(r"[\w./+-]*\w\.\w+")
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
    return found - first_instructions(run)


def first_instructions(run: CommandTrace) -> set[str]:
    """The scripts and Makefiles that the command itself starts with."""
    firsts = {number: path for number in range(len(run.trace.processes)) if (path := _first(run, number))}
    return {path for number, path in firsts.items() if not any(one in firsts for one in run.ancestors(number))}


def _first(run: CommandTrace, number: int) -> str | None:
    """The file with which a shell or `make` begins."""
    if not run.runs_instructions(number):
        return None
    if run.is_shell(number):
        return run.scripts.get(number)
    return next((path for path, numbers in run.read_by.items() if number in numbers), None)


def may_change(run: CommandTrace, path: str, after: bytes) -> bool:
    """Whether the other version of some instructions, or new ones, leave to the check what it decides.

    Any may name other files, and nothing else. Lower ones, but for what `make` includes, may do more: every line that
    tests something, or that changes how others are tested, is the same, and no new function has the name of a word of
    the other instructions."""
    before = run.tree.files.get(path, b"")
    if _names_other_files_alone(run, path, before, after):
        return True
    if path in first_instructions(run) or _is_included(run, path) or _lines(before) != _lines(after):
        return False
    others = b"\n".join(
        run.tree.files[other]
        for other, numbers in run.read_by.items()
        if other != path and any(map(run.runs_instructions, numbers))
    )
    new = {name.encode() for name in _functions(after) - _functions(before)}
    return not any(re.search(rb"(?<![\w.:-])" + re.escape(name) + rb"(?![\w.:-])", others) for name in new)


def _is_included(run: CommandTrace, path: str) -> bool:
    """Whether `make` reads a file after the one with which it begins."""
    return any(
        run.runs_instructions(number) and not run.is_shell(number) and _first(run, number) != path
        for number in run.read_by.get(path, ())
    )


def _names_other_files_alone(run: CommandTrace, path: str, before: bytes, after: bytes) -> bool:
    """Whether all words that are new are the names of files, and all that are gone have the form of one."""
    old, new = before.split(), after.split()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    added = [word.decode(errors="replace") for kind, _, _, at, to in changes if kind != "equal" for word in new[at:to]]
    gone = [word.decode(errors="replace") for kind, at, to, *_ in changes if kind != "equal" for word in old[at:to]]
    beside = posixpath.dirname(path)
    return all(_FILE.fullmatch(word) for word in gone) and all(
        _LIBRARY.fullmatch(word)
        or any(posixpath.normpath(posixpath.join(directory, word)) in run.tree for directory in ("", beside))
        for word in added
    )


def _functions(content: bytes) -> set[str]:
    return {match[2].decode() for match in _FUNCTION.finditer(content)}


def _lines(content: bytes) -> list[bytes]:
    return [line.strip() for line in content.splitlines() if _CHECKS_SOMETHING.search(line)]
