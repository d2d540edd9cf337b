"""Find Python statements in text that is not Python: documentation, comments, doctests, notebooks, diffs.

Formats mark code in many ways (fences, indents, prompts, tags), but all contain its lines. So every line that parses as
a statement counts, whatever is around it; prose that happens to parse is short and matches nothing.
"""

import ast
import html
import json
import re
from collections.abc import Iterator

from gametape.syntax.source import parse_or_none
from gametape.tasks.mining.leaks.fingerprints import NormalizedStatement, normalized_statements

_MARKS = re.compile(r"^\s*(?:(?:>>>|\.\.\.)(?=\s|$)|In \[\d+\]:|[#>|+*-]+(?=\s|$)|//+)?\s*")
_LIKE_CODE = re.compile(r"[=(\[.:]|^(?:return|raise|yield|del|assert|import|from|continue|break)\b")
_HEAD = re.compile(r"^(?:if|elif|while|for|with|def|class|async|except|match|case)\b")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|#.*")
_TAG = re.compile(r"<[^<>]{0,200}>")
_LONGEST_LINE = 2000
_MOST_LINES = 40
"""A statement with more lines is not found."""


def statements_in(path: str, text: str) -> tuple[NormalizedStatement, ...]:
    """The statements in a file of any kind, in order."""
    if path.endswith(".ipynb"):
        text = "\n".join(_cells(text))
    elif path.endswith((".html", ".htm")):
        text = html.unescape(_TAG.sub("", text))
    return tuple(statements_in_lines(list(enumerate(text.splitlines(), start=1))))


def statements_in_lines(numbered: list[tuple[int, str]]) -> Iterator[NormalizedStatement]:
    """The statements in numbered lines, which need not be consecutive."""
    lines = [(number, _MARKS.sub("", line, count=1).rstrip()) for number, line in numbered]
    at = 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        if not 4 <= len(line) <= _LONGEST_LINE or not _LIKE_CODE.search(line):
            continue
        whole, used = _joined(lines, at - 1)
        parsed = _parsed(whole)
        if parsed is None and used > 1:
            parsed = _parsed(line)
        elif parsed is not None:
            at += used - 1
        for statement in normalized_statements(parsed or ()):
            yield statement._replace(line=number)


def _joined(lines: list[tuple[int, str]], start: int) -> tuple[str, int]:
    """The line with those that its open brackets continue on."""
    parts: list[str] = []
    depth = 0
    for _, line in lines[start : start + _MOST_LINES]:
        parts.append(line)
        bare = _QUOTED.sub("", line)
        depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
        if depth <= 0 and not bare.endswith("\\"):
            break
    else:
        return parts[0], 1
    return "\n".join(parts), len(parts)


def _parsed(line: str) -> list[ast.stmt] | None:
    head = _HEAD.match(line)
    if head and _QUOTED.sub("", line).rstrip().endswith(":"):
        line = {
            "elif": f"{line[2:]}\n pass",
            "except": f"try: pass\n{line}\n pass",
            "case": f"match _:\n {line}\n  pass",
            "match": f"{line}\n case _: pass",
        }.get(head[0], f"{line}\n pass")
    module = parse_or_none(line)
    return None if module is None else module.body


def _cells(text: str) -> Iterator[str]:
    """The sources of a notebook's cells, or the text itself if it is not a notebook."""
    try:
        cells = json.loads(text)["cells"]
        for cell in cells:
            source = cell["source"]
            yield source if isinstance(source, str) else "".join(source)
    except (ValueError, KeyError, TypeError, RecursionError):
        yield text
