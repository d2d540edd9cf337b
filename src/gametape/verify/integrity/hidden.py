"""A rule over Python files that are written so that nobody can read them, and how a file's text is found."""

import ast
import codecs
import re
import warnings
from collections.abc import Iterator

from gametape.verify.attempt import Attempt
from gametape.verify.integrity.code import parse
from gametape.verify.integrity.rule import Finding, over_tree
from gametape.verify.integrity.source import coding_of, source_text

_READABLE = re.compile(
    r"utf-?8(-sig)?|ascii|us-ascii|iso-?8859-?\d+|latin-?\d*|cp\d+|windows-\d+|koi8-[ru]|mac-roman|"
    r"shift[-_]?jis|euc[-_]\w+|gb\w+|big5\w*|utf-?16|utf-?32",
    re.IGNORECASE,
)


@over_tree(
    "special-case.unreadable",
    "suspect",
    "a Python file is written so that it cannot be read: in a coding that hides its text, or too large or deep",
    "only files that Python itself can run, and that the task does not have like that; the usual codings are free",
)
def unreadable(attempt: Attempt) -> Iterator[Finding]:
    for path in attempt.written_sources:
        if not path.endswith(".py"):
            continue
        content = attempt.sources.files[path]
        coding = coding_of(content)
        if coding and not _READABLE.fullmatch(coding) and _is_coding(coding):
            yield Finding(f"coding {coding}", file=path, line=1)
        elif parse(path, source_text(content)) is None and _runs(content):
            yield Finding(f"{len(content):,} bytes, nested or large beyond reading", file=path)


def _is_coding(name: str) -> bool:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return True


def _runs(content: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError, LookupError):
        return False
    return True
