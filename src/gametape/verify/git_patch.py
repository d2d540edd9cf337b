"""The difference of two trees as a patch in git's format, such that `git apply` makes the one into the other exactly.

Files in UTF-8 are compared line by line, and `patch -p1` applies that as well. All others, and those with a NUL byte,
are written whole as git's binary patches, which only git knows. Nor does `patch` make a file into a directory or find
the name of an empty file if there is a space in it.
"""

import base64
import difflib
import hashlib
import zlib
from collections.abc import Iterator

from gametape.record.source_tree import SourceTree

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file\n"
NOWHERE = "/dev/null"
BYTES_PER_LINE = 52

LineChange = tuple[int, int, int, int]
"""Lines from and to of the old file, and those of the new one that take their place."""

_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def make_git_patch(before: SourceTree, after: SourceTree) -> str:
    """The patch, empty if nothing differs. It is to be written as it is: line ends in it are the files' own.

    Removed files come first.
    """
    removed = sorted(set(before) - set(after))
    return "".join(_file(before, after, path) for path in [*removed, *sorted(after)])


def _file(before: SourceTree, after: SourceTree, path: str) -> str:
    old, new = before.files.get(path), after.files.get(path)
    old_mode, new_mode = _mode(before, path), _mode(after, path)
    if (old, old_mode) == (new, new_mode):
        return ""
    head = [f"diff --git {_quoted('a/' + path)} {_quoted('b/' + path)}"]
    if old is None:
        head.append(f"new file mode {new_mode}")
    elif new is None:
        head.append(f"deleted file mode {old_mode}")
    elif old_mode != new_mode:
        head += [f"old mode {old_mode}", f"new mode {new_mode}"]
    if old != new:
        same_mode = f" {new_mode}" if old_mode == new_mode else ""
        head.append(f"index {_object_id(old)}..{_object_id(new)}{same_mode}")
    return "".join(f"{line}\n" for line in head) + _content(path, old, new)


def _content(path: str, old: bytes | None, new: bytes | None) -> str:
    if (old or b"") == (new or b""):
        return ""
    lines, new_lines = _lines(old), _lines(new)
    if lines is None or new_lines is None:
        return f"GIT binary patch\n{_literal(new)}\n{_literal(old)}\n"
    names = [_named("a/", path) if old is not None else NOWHERE, _named("b/", path) if new is not None else NOWHERE]
    return f"--- {names[0]}\n+++ {names[1]}\n" + "".join(_hunks(lines, new_lines))


def _mode(tree: SourceTree, path: str) -> str:
    return "" if path not in tree else "100755" if path in tree.executable else "100644"


def _lines(content: bytes | None) -> list[str] | None:
    """The lines with their ends, where only a line feed ends one; None if it is no text that a patch could hold."""
    if b"\0" in (content or b""):
        return None
    try:
        parts = (content or b"").decode().split("\n")
    except UnicodeDecodeError:
        return None
    return [f"{part}\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    hunk: list[LineChange] = []
    for change in _changes(old, new):
        if hunk and change[0] - hunk[-1][1] > 2 * CONTEXT:
            yield _hunk(old, new, hunk)
            hunk = []
        hunk.append(change)
    if hunk:
        yield _hunk(old, new, hunk)


def _changes(old: list[str], new: list[str]) -> Iterator[LineChange]:
    """What both begin and end with is cut off first: few lines of a file differ as a rule."""
    first = _alike(old, new)
    last = _alike(old[first:][::-1], new[first:][::-1])
    matcher = difflib.SequenceMatcher(None, old[first : len(old) - last], new[first : len(new) - last])
    for kind, *span in matcher.get_opcodes():
        if kind != "equal":
            old_from, old_to, new_from, new_to = (first + line for line in span)
            yield old_from, old_to, new_from, new_to


def _alike(some: list[str], others: list[str]) -> int:
    pairs = enumerate(zip(some, others, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(some), len(others)))


def _hunk(old: list[str], new: list[str], changes: list[LineChange]) -> str:
    above = min(CONTEXT, changes[0][0])
    below = min(CONTEXT, len(old) - changes[-1][1])
    spans = (
        _span(changes[0][0] - above, changes[-1][1] + below),
        _span(changes[0][2] - above, changes[-1][3] + below),
    )
    text = [f"@@ -{spans[0]} +{spans[1]} @@\n"]
    told = changes[0][0] - above
    for old_from, old_to, new_from, new_to in changes:
        text += [_marked(" ", line) for line in old[told:old_from]]
        text += [_marked("-", line) for line in old[old_from:old_to]]
        text += [_marked("+", line) for line in new[new_from:new_to]]
        told = old_to
    text += [_marked(" ", line) for line in old[told : told + below]]
    return "".join(text)


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n{NO_NEWLINE}"


def _span(begin: int, end: int) -> str:
    """Lines count from one; an empty span stands after the line it names."""
    count = end - begin
    line = begin + 1 if count else begin
    return str(line) if count == 1 else f"{line},{count}"


def _named(side: str, path: str) -> str:
    """A name in the lines before hunks, where a tab ends one that has a space in it."""
    return _quoted(side + path) + ("\t" if " " in path else "")


def _quoted(name: str) -> str:
    """A name as git writes it: bytes that are not plain are escaped, and the whole is then in quotes."""
    escaped = "".join(map(_escaped, name.encode()))
    return name if escaped == name else f'"{escaped}"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return f"\\{_ESCAPES[byte]}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _object_id(content: bytes | None) -> str:
    """What git calls a file's content by. Binary patches are applied to that alone."""
    if content is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _literal(content: bytes | None) -> str:
    """A whole file: deflated, in base 85, every line led by a letter for how many bytes it holds."""
    packed = zlib.compress(content or b"")
    parts = [packed[start : start + BYTES_PER_LINE] for start in range(0, len(packed), BYTES_PER_LINE)]
    text = "".join(f"{_length(part)}{base64.b85encode(part, pad=True).decode()}\n" for part in parts)
    return f"literal {len(content or b'')}\n{text}"


def _length(part: bytes) -> str:
    return chr(ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27)
