"""The difference of two trees as a patch in git's format: `git apply` turns the one into the other exactly.

Files in UTF-8 are compared line by line, and `patch -p1` applies that as well. All others, and those with a NUL byte,
are written whole as git's binary patches, which only git reads. `patch` also cannot turn a file into a directory, or
find the name of an empty file if there is a space in it.
"""

import base64
import difflib
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator

from gametape.record.source_tree import SourceTree

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file\n"
NOWHERE = "/dev/null"
BYTES_PER_LINE = 52
_MAX_PAIRS = 2_000_000

LineChange = tuple[int, int, int, int]
"""First and last line (half open) in the old file, and those in the new file that replace them."""

_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def make_git_patch(before: SourceTree, after: SourceTree) -> str:
    """The patch, empty if nothing differs. Removed files come first.

    Write it without newline translation: it holds the line ends of the files.
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
    """The lines with their ends; only a line feed ends one. None if a text patch cannot hold the content."""
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
    """The common beginning and end are cut off first, since usually few lines of a file differ. Where the rest repeats
    its lines so often that a comparison would take very long, it is replaced as a whole."""
    first = _common_prefix(old, new)
    last = _common_prefix(old[first:][::-1], new[first:][::-1])
    before, after = old[first : len(old) - last], new[first : len(new) - last]
    if _compared_pairs(before, after) > _MAX_PAIRS:
        yield first, len(old) - last, first, len(new) - last
        return
    matcher = difflib.SequenceMatcher(None, before, after)
    for kind, *span in matcher.get_opcodes():
        if kind != "equal":
            old_from, old_to, new_from, new_to = (first + line for line in span)
            yield old_from, old_to, new_from, new_to


def _compared_pairs(old: list[str], new: list[str]) -> int:
    """How many pairs of equal lines difflib looks at; it leaves out lines that more than a hundredth of a file are."""
    counts = Counter(new)
    most = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    return sum(count * counts[line] for line, count in Counter(old).items() if counts[line] <= most)


def _common_prefix(left: list[str], right: list[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (old, new) in pairs if old != new), min(len(left), len(right)))


def _hunk(old: list[str], new: list[str], changes: list[LineChange]) -> str:
    above = min(CONTEXT, changes[0][0])
    below = min(CONTEXT, len(old) - changes[-1][1])
    spans = (
        _span(changes[0][0] - above, changes[-1][1] + below),
        _span(changes[0][2] - above, changes[-1][3] + below),
    )
    text = [f"@@ -{spans[0]} +{spans[1]} @@\n"]
    written = changes[0][0] - above
    for old_from, old_to, new_from, new_to in changes:
        text += [_marked(" ", line) for line in old[written:old_from]]
        text += [_marked("-", line) for line in old[old_from:old_to]]
        text += [_marked("+", line) for line in new[new_from:new_to]]
        written = old_to
    text += [_marked(" ", line) for line in old[written : written + below]]
    return "".join(text)


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n{NO_NEWLINE}"


def _span(begin: int, end: int) -> str:
    """Lines count from one; an empty span stands after the line it names."""
    count = end - begin
    line = begin + 1 if count else begin
    return str(line) if count == 1 else f"{line},{count}"


def _named(side: str, path: str) -> str:
    """A name as it stands in the `---` and `+++` lines, where a tab ends a name that has a space in it."""
    return _quoted(side + path) + ("\t" if " " in path else "")


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes if any byte has to be escaped."""
    escaped = "".join(map(_escaped, name.encode()))
    return name if escaped == name else f'"{escaped}"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return f"\\{_ESCAPES[byte]}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _object_id(content: bytes | None) -> str:
    """Git's id of a file's content. Git applies a binary patch only to content with the id named in it."""
    if content is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _literal(content: bytes | None) -> str:
    """A whole file: deflated, in base 85; the first letter of each line says how many bytes it holds."""
    packed = zlib.compress(content or b"")
    parts = [packed[start : start + BYTES_PER_LINE] for start in range(0, len(packed), BYTES_PER_LINE)]
    text = "".join(f"{_length(part)}{base64.b85encode(part, pad=True).decode()}\n" for part in parts)
    return f"literal {len(content or b'')}\n{text}"


def _length(part: bytes) -> str:
    return chr(ord("A") + len(part) - 1 if len(part) <= 26 else ord("a") + len(part) - 27)
