"""The lines of a log, also while it grows, is truncated or is replaced by its successor. Compressed ones too.

It is opened once, so a pipe works as well as a file; what is read ahead to guess the format is not lost.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error

_LONGEST_LINE = 16 << 20
_POLL_SECONDS = 0.25
_OPENERS: dict[bytes, Callable[[io.BufferedReader], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
"""How each kind of compressed file begins, and what reads it."""
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")


class LogTail:
    """At the end of the file, `go_on` says whether to wait for more. Then a line counts once it is whole.

    Where another file has taken its name by then, or it has become shorter than what was read of it, reading begins
    again at the first line of what is there now.
    """

    def __init__(self, path: Path, go_on: Callable[[], bool] = lambda: False) -> None:
        self.path = path
        self._go_on = go_on
        self._ahead: deque[bytes] = deque()
        self.incomplete = False
        """Whether the last line had no newline: perhaps its writer was killed."""
        self._number = 0
        self._open()

    def _open(self) -> None:
        try:
            if self.path.is_dir():
                raise BadInput(f"{printable_path(self.path)}: a directory")
            self._raw = self.path.open("rb")
            head = self._raw.peek(max(map(len, _OPENERS)))
        except OSError as error:
            raise read_error(self.path, error) from None
        except ValueError:
            raise BadInput(f"{printable_path(self.path)}: not a path") from None
        opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
        self._file: io.BufferedIOBase = opener(self._raw) if opener else self._raw

    def __enter__(self) -> "LogTail":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._raw.close()

    def peek_first_line(self) -> bytes:
        """The first line that is not blank, read ahead; of a very long one only a part."""
        while True:
            line = self._next()
            if not self._ahead:
                line = line.removeprefix(codecs.BOM_UTF8)
            self._ahead.append(line)
            if not line or line.strip():
                return line.strip()

    def read_head(self, size: int) -> bytes:
        """So many bytes of the content, with the rest of the line in which they end."""
        head = self._read(lambda: self._file.read(size))
        if len(head) < size or head.endswith(b"\n"):
            return head
        return head + self._read(lambda: self._file.readline(_LONGEST_LINE))

    def read_all(self) -> bytes:
        """The whole content."""
        return b"".join(self._ahead) + self._read(self._file.read)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Numbered lines without their ends."""
        while line := self._ahead.popleft() if self._ahead else self._next():
            self._number += 1
            self.incomplete = not line.endswith(b"\n")
            if self.incomplete and len(line) >= _LONGEST_LINE:
                raise BadInput(
                    f"{printable_path(self.path)}: line {self._number} is longer than {_LONGEST_LINE >> 20} MiB"
                )
            yield self._number, line if self.incomplete else line[:-1]

    def _next(self) -> bytes:
        """A line with its newline, or what there is of it when `go_on` says not to wait."""
        line = b""
        replaced = False
        while True:
            line += self._read(lambda: self._file.readline(_LONGEST_LINE))
            if line.endswith(b"\n") or len(line) >= _LONGEST_LINE or not self._go_on():
                return line
            if replaced:
                self._file.close()
                self._raw.close()
                self._open()
                self._number = 0
                line, replaced = b"", False
            else:
                replaced = self._replaced()  # what was written before it was is read first
            if not replaced:
                time.sleep(_POLL_SECONDS)

    def _replaced(self) -> bool:
        here = os.fstat(self._raw.fileno())
        if not stat.S_ISREG(here.st_mode):
            return False
        try:
            now = self.path.stat()
        except OSError:
            return False
        return not os.path.samestat(here, now) or now.st_size < self._raw.tell()

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise BadInput(f"{printable_path(self.path)}: cannot be read ({error})") from None
