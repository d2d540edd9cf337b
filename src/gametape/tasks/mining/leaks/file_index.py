"""Index the code in every file that an agent can read: functions, statements, and code in text.

The trees of one project's candidates differ in a few functions, so results are cached by content, and for Python by
pieces of files: only pieces that a deletion changed are parsed again.
"""

import ast
import functools
import io
import itertools
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gametape.syntax.source import parse_or_none
from gametape.tasks.mining.leaks.fingerprints import NormalizedStatement, fingerprint, normalized_statements
from gametape.tasks.mining.leaks.text_statements import statements_in, statements_in_lines
from gametape.tasks.mining.removal.python_source import FunctionNode

MIN_INDEXED_NODES = 7
"""Statements with at least so many nodes are search keys; smaller ones count only next to them."""
MAX_FILE_BYTES = 4_000_000
"""How much of a file, or of an archive member, is read."""
MAX_ARCHIVE_MEMBERS = 4_000
_MOST_UNPACKED = 100_000_000
_BROKEN_ARCHIVE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError)
_LONG_TEXT = 40
_DEFINITION = re.compile(r"^(?:(?:def|class|async)\b|@)", re.MULTILINE)
_METHOD = re.compile(r"^    (?:(?:def|class|async)\b|@)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#(.*)$", re.MULTILINE)


class CodeUnit(NamedTuple):
    """Consecutive statements: a function, the code around functions, or one text."""

    kind: str
    """`function`, `code` or `text`."""
    line: int
    fingerprints: frozenset[str]
    """The fingerprints of a function and of those inside it."""
    statements: tuple[NormalizedStatement, ...]


class FilePiece(NamedTuple):
    """Part of a file, with lines counted from its own start."""

    units: tuple[CodeUnit, ...]
    keys: frozenset[int | str]
    """All its search keys."""


FilePieces = tuple[tuple[int, FilePiece], ...]
"""The pieces of a file, each with the number of lines before it."""


@functools.lru_cache(maxsize=20_000)
def index_file(path: str, content: bytes) -> tuple[tuple[str, FilePieces], ...]:
    """The pieces of a file, or of each file in an archive. Nothing in it is executed."""
    indexed = [
        (path, _pieces(path, content)),
        *((name, _pieces(name, part)) for name, part in archive_members(path, content)),
    ]
    return tuple((name, pieces) for name, pieces in indexed if pieces)


def _pieces(path: str, content: bytes) -> FilePieces:
    if b"\0" in content[:8192]:
        return ()
    text = content[:MAX_FILE_BYTES].decode("utf-8", "replace").replace("\r\n", "\n")
    pieces = _python(text) if path.endswith((".py", ".pyi", ".pyw")) else None
    if pieces is None:
        pieces = ((0, _piece((CodeUnit("text", 1, frozenset(), statements_in(path, text)),))),)
    return tuple((before, piece) for before, piece in pieces if piece.keys)


def archive_members(path: str, content: bytes | Path, only: tuple[str, ...] = ("",)) -> Iterator[tuple[str, bytes]]:
    """The files in an archive with one of these endings, within size limits; nothing if it is not an archive."""
    try:
        if path.endswith((".zip", ".whl", ".egg", ".pyz")):
            members = _zipped(content, only)
        elif path.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
            members = _tarred(content, only)
        else:
            return
        left = _MOST_UNPACKED
        for name, packed in itertools.islice(members, MAX_ARCHIVE_MEMBERS):
            yield f"{path}!{name}", packed
            left -= len(packed)
            if left <= 0:
                return
    except (*_BROKEN_ARCHIVE, OSError, EOFError, ValueError, RuntimeError):
        return


def _zipped(content: bytes | Path, only: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content) as archive:
        for member in archive.infolist():
            if member.filename.endswith(only) and not member.is_dir():
                with archive.open(member) as file:
                    yield member.filename, file.read(MAX_FILE_BYTES)


def _tarred(content: bytes | Path, only: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content if isinstance(content, bytes) else content.read_bytes())) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() and member.name.endswith(only) else None
            if file is not None:
                yield member.name, file.read(MAX_FILE_BYTES)


def _python(text: str) -> FilePieces | None:
    """The file in pieces that begin at top-level definitions or methods. A class or a file whose pieces do not parse,
    because a string spans them, is one piece. None if the file is not Python."""
    all_pieces: list[tuple[int, FilePiece]] = []
    line = 0
    for part in _cut(text, _DEFINITION):
        pieces = _class(part) if part.startswith("class") else None
        if pieces is None and (whole := _parsed(part)):
            pieces = ((0, whole),)
        if pieces is None:
            return ((0, whole),) if (whole := _parsed(text)) else None
        all_pieces += ((line + before, piece) for before, piece in pieces)
        line += part.count("\n")
    return tuple(all_pieces)


def _class(text: str) -> FilePieces | None:
    pieces = []
    line = 0
    for part in _cut(text, _METHOD):
        piece = _parsed(f"{part}\n    pass\n" if line == 0 else f"if 1:\n{part}")
        if piece is None:
            return None
        pieces.append((line - (line > 0), piece))
        line += part.count("\n")
    return tuple(pieces)


def _cut(text: str, definition: re.Pattern[str]) -> Iterator[str]:
    """Cut before each definition, but not between a decorator and its definition."""
    start = 0
    decorated = False
    for match in definition.finditer(text):
        if not decorated and match.start() > start:
            yield text[start : match.start()]
            start = match.start()
        decorated = match[0].endswith("@")
    yield text[start:]


@functools.lru_cache(maxsize=50_000)
def _parsed(source: str) -> FilePiece | None:
    module = parse_or_none(source)
    if module is None:
        return None
    functions: list[FunctionNode] = []
    rest: list[ast.stmt] = []
    _sort(module.body, functions, rest)
    units = [
        CodeUnit("function", node.lineno, _fingerprints(node), tuple(normalized_statements(node.body)))
        for node in functions
    ]
    units.append(CodeUnit("code", 1, frozenset(), tuple(normalized_statements(rest))))
    units += [*_texts(module), *_comments(source)]
    return _piece(tuple(unit for unit in units if unit.statements))


def _sort(body: list[ast.stmt], functions: list[FunctionNode], rest: list[ast.stmt]) -> None:
    """Outermost functions and methods, and the statements around them."""
    for node in body:
        if isinstance(node, FunctionNode):
            functions.append(node)
        elif isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.With):
            for name in ("body", "orelse", "finalbody"):
                _sort(getattr(node, name, []), functions, rest)
            for handler in getattr(node, "handlers", []):
                _sort(handler.body, functions, rest)
        else:
            rest.append(node)


def _fingerprints(function: FunctionNode) -> frozenset[str]:
    inside = (node for node in ast.walk(function) if isinstance(node, FunctionNode))
    return frozenset(digest for node in inside if (digest := fingerprint(node)))


def _texts(module: ast.Module) -> Iterator[CodeUnit]:
    """Code in docstrings, doctests and other long strings."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) >= _LONG_TEXT:
            numbered = list(enumerate(node.value.splitlines(), start=node.lineno))
            yield CodeUnit("text", node.lineno, frozenset(), tuple(statements_in_lines(numbered)))


def _comments(source: str) -> Iterator[CodeUnit]:
    numbered = [(source.count("\n", 0, match.start()) + 1, match[1]) for match in _COMMENT.finditer(source)]
    if numbered:
        yield CodeUnit("text", numbered[0][0], frozenset(), tuple(statements_in_lines(numbered)))


def _piece(units: tuple[CodeUnit, ...]) -> FilePiece:
    keys: set[int | str] = set()
    for unit in units:
        keys.update(unit.fingerprints)
        keys.update(statement.key for statement in unit.statements if statement.size >= MIN_INDEXED_NODES)
    return FilePiece(units, frozenset(keys))
