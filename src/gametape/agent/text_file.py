"""A file of the workspace as text: decoding, encoding, and numbered windows of its lines.

Parts that are not edited must come back byte for byte, so a `TextFile` keeps its encoding and its line ends.
"""

import codecs
import io
import os
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.core.errors import BadInput
from gametape.sandbox.output import sanitize, secret_values

WINDOW_LINES = 80
"""The default number of lines in a window."""

MAX_TEXT_BYTES = 8 << 20
"""The largest file that is read as text: its lines take many times their size in memory."""

_LONGEST_LINE = 400
_LOOKED_AT = 8192
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = frozenset({"utf-8", "ascii", "iso-8859-1", "iso-8859-15", "cp1252"})
"""The encodings that a declaration in the file may choose: they decode ASCII the same, in linear time."""


@dataclass(frozen=True)
class TextFile:
    """`body` has line ends of one character where the file uses one kind throughout; else it has them as they are."""

    body: str
    encoding: str = "utf-8"
    newline: str = "\n"
    """The line end in the file that a line end of `body` stands for."""

    @property
    def lines(self) -> list[str]:
        """Without their ends; a line end at the very end begins no further line."""
        lines = self.body.split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    def with_body(self, body: str) -> "TextFile":
        return TextFile(body, self.encoding, self.newline)

    def encode(self) -> bytes:
        """The file's bytes. Raises `BadInput` for characters that its encoding does not have."""
        text = self.body if self.newline == "\n" else self.body.replace("\n", self.newline)
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise BadInput(f"the file is written in {self.encoding}, which has no {character!r}") from error


def decode_text(content: bytes) -> TextFile | None:
    """A file's text; None where it is not text. Raises `BadInput` for a file that is too large."""
    if len(content) > MAX_TEXT_BYTES:
        raise BadInput(
            f"the file has {len(content):,} bytes; above {MAX_TEXT_BYTES:,} use the shell (head, sed -n, sed -i)"
        )
    encoding = next((name for bom, name in _BOMS if content.startswith(bom)), None)
    if encoding is None and b"\0" in content[:_LOOKED_AT]:
        return None
    for candidate in (encoding, "utf-8", _declared(content), "iso-8859-1"):
        if candidate is None:
            continue
        try:
            text = content.decode(candidate)
        except UnicodeDecodeError:
            continue
        if text.encode(candidate) == content:
            return _with_line_ends(text, candidate)
    return None


def sanitize_text(text: str) -> str:
    """Text of the workspace without terminal control characters and without secrets of the host."""
    return sanitize(text, secret_values(os.environ))


def number_lines(lines: Sequence[str], first: int, count: int) -> str:
    """Lines with their numbers, from number `first` on."""
    last = min(len(lines), first + count - 1)
    width, hidden = len(str(last)), secret_values(os.environ)
    numbered = ((number, sanitize(lines[number - 1].rstrip("\r"), hidden)) for number in range(max(1, first), last + 1))
    return "\n".join(f"{number:>{width}}  {_short(line)}" for number, line in numbered)


def window_start(line: int, count: int, total: int) -> int:
    """The first line of a window of `count` lines that has `line` a third of the way down."""
    return max(1, min(line - count // 3, total - count + 1))


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} [... {len(line) - _LONGEST_LINE:,} more]"


def _declared(content: bytes) -> str | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except (SyntaxError, ValueError, LookupError):
        return None
    return encoding if encoding in _DECLARED else None


def _with_line_ends(text: str, encoding: str) -> TextFile:
    pairs = text.count("\r\n")
    if pairs and pairs == text.count("\n") and pairs == text.count("\r"):
        return TextFile(text.replace("\r\n", "\n"), encoding, "\r\n")
    return TextFile(text, encoding)
