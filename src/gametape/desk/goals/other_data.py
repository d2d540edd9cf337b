"""The data of a check with other contents: what a command says of them shows whether it compares with them at all.

Every digit and every letter is replaced by another of its kind, so that a number stays a number and JSON stays JSON.
"""

from collections.abc import Iterable

from gametape.record.source_tree import SourceTree

_DIGITS = ("123456789", "234567891")
_LETTERS = ("abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza")
_OTHERS = str.maketrans("".join((_DIGITS[0], _LETTERS[0], _LETTERS[0].upper())),
                        "".join((_DIGITS[1], _LETTERS[1], _LETTERS[1].upper())))  # fmt: skip


def with_other_data(tree: SourceTree, paths: Iterable[str], last_line: bool = False) -> SourceTree | None:
    """The tree in which these files, or the last line of each, say something else; None where none of them can, since
    they are no text."""
    changed: dict[str, bytes] = {}
    for path in paths:
        try:
            text = tree.files[path].decode()
        except UnicodeDecodeError:
            continue
        begin = text.rstrip().rfind("\n") + 1 if last_line else 0
        other = text[:begin] + text[begin:].translate(_OTHERS)
        if other != text:
            changed[path] = other.encode()
    programs = frozenset(path for path in changed if path in tree.executable)
    return SourceTree(changed, programs).overlaid_on(tree) if changed else None
