"""Find copies of a project's functions outside the workspace: in the interpreter, installed packages, and /usr.

That is hundreds of megabytes, so it is read once for a project, and only for whole functions of the same name: a
definition is parsed only if the project has a function of that name and the text contains all words of its body.
"""

import ast
import functools
import itertools
import os
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gametape.tasks.mining.leaks.file_index import MAX_FILE_BYTES, archive_members
from gametape.tasks.mining.leaks.fingerprints import fingerprint, functions_by_line, local_names
from gametape.tasks.mining.removal.python_source import FunctionNode

_PYTHON = (".py", ".pyi")
_ARCHIVES = (".zip", ".whl", ".egg")
_DEFINED = re.compile(rb"def[ \t]+(\w+)")
_STATEMENTS: dict[type[ast.AST], str] = {
    **{ast.For: "for", ast.While: "while", ast.With: "with", ast.Try: "try", ast.Raise: "raise", ast.Return: "return"},
    **{ast.Yield: "yield", ast.If: "if", ast.IfExp: "else", ast.Lambda: "lambda", ast.Not: "not"},
}
_AT_ONCE = 256
_READERS = 2
_MOST_MARGINS = 50
"""After so many candidates for its end, a definition is assumed to reach to the end of its file."""

WantedFunctions = Mapping[bytes, Mapping[str, tuple[bytes, ...]]]
"""By function name and body fingerprint: the words that every copy contains."""


@dataclass(frozen=True)
class OutsideIndex:
    """Copies of a project's functions outside the workspace: paths and lines by body fingerprint."""

    locations: Mapping[str, tuple[tuple[str, int], ...]]


NOTHING_OUTSIDE = OutsideIndex({})


def build_outside_index(
    roots: Iterable[str | Path], sources: Mapping[str, str], hidden: Collection[str] = ()
) -> OutsideIndex:
    """Search these directories, except the hidden ones, for copies of all functions of these sources (by path).

    One index serves every choice of deleted functions. Links are not followed: a target that the sandbox shows is found
    under its own path.
    """
    wanted = _wanted(sources.values())
    locations: dict[str, list[tuple[str, int]]] = {}
    with ThreadPoolExecutor(_READERS) as readers:
        paths = (path for root in roots for path in _below(str(root), hidden))
        batches = iter(lambda: list(itertools.islice(paths, _AT_ONCE)), [])
        for copies in readers.map(lambda batch: list(_copies(batch, wanted)), batches):
            for digest, path, line in copies:
                locations.setdefault(digest, []).append((path, line))
    return OutsideIndex({digest: tuple(found_at) for digest, found_at in locations.items()})


def _wanted(sources: Iterable[str]) -> WantedFunctions:
    by_start: dict[bytes, dict[str, tuple[bytes, ...]]] = {}
    for source in sources:
        for node in functions_by_line(source).values():
            if mark := fingerprint(node):
                by_start.setdefault(node.name.encode(), {})[mark] = _words_of(node)
    return by_start


def _words_of(function: FunctionNode) -> tuple[bytes, ...]:
    """Words in a body that no renaming of variables changes, the longest first: they are the rarest."""
    local = local_names(function)
    kept = set()
    for part in function.body:
        for node in ast.walk(part):
            match node:
                case ast.Attribute():
                    kept.add(node.attr)
                case ast.keyword(arg=str(name)):
                    kept.add(name)
                case ast.Name() if node.id not in local:
                    kept.add(node.id)
                case _:
                    kept.add(_STATEMENTS.get(type(node), ""))
    return tuple(sorted((word.encode() for word in kept), key=lambda word: (-len(word), word)))


def _below(root: str, hidden: Collection[str]) -> Iterator[str]:
    waiting = [root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path not in hidden:
                            waiting.append(entry.path)
                    elif entry.name.endswith((*_PYTHON, *_ARCHIVES)) and entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue  # what gametape cannot read, the sandbox does not show either


def _contents(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        if path.endswith(_PYTHON):
            try:
                with open(path, "rb", buffering=0) as file:
                    yield path, file.read(MAX_FILE_BYTES)
            except OSError:
                continue
        else:
            yield from archive_members(path, Path(path), only=_PYTHON)


def _copies(paths: Sequence[str], wanted: WantedFunctions) -> Iterator[tuple[str, str, int]]:
    """The wanted functions in these files: fingerprint, path and line."""
    for path, content in _contents(paths):
        if wanted.keys().isdisjoint(_DEFINED.findall(content)):
            continue
        for match in _DEFINED.finditer(content):
            digests = wanted.get(match[1])
            if digests is None:
                continue
            text = _definition(content, match.start())
            if any(_has_words(text, words) for words in digests.values()):
                line = content.count(b"\n", 0, match.start()) + 1
                digest = _mark(text, content, line)
                if digest is not None and digest in digests:
                    yield digest, path, line


def _has_words(text: bytes, words: tuple[bytes, ...]) -> bool:
    return all(word in text for word in words)


def _definition(content: bytes, start: int) -> bytes:
    """The text of a definition, up to the next line that is not indented deeper and not in a triple-quoted string."""
    indent = start - (content.rfind(b"\n", 0, start) + 1)
    ends = _end_after(min(indent, 80)).finditer(content, start)
    for end in itertools.islice(ends, _MOST_MARGINS):
        text = content[start : end.start()]
        if text.count(b'"""') % 2 == 0 and text.count(b"'''") % 2 == 0:
            return b" " * indent + text
    return b" " * indent + content[start:]


@functools.cache
def _end_after(indent: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n[ \t]{0,%d}[^\s)\]}#]" % indent)


def _mark(text: bytes, content: bytes, line: int) -> str | None:
    """The fingerprint of a definition from its own text, or from the whole file if a string with unindented lines made
    that text too short."""
    alone = functions_by_line(textwrap.dedent(text.decode("utf-8", "replace"))).get(1)
    node = alone or functions_by_line(content.decode("utf-8", "replace")).get(line)
    return fingerprint(node) if node else None
