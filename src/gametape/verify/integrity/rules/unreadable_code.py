"""Rules over code that cannot be read: odd encodings, excessive size or depth, objects packed into bytes."""

import ast
import codecs
import re
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule, resolve_module
from gametape.syntax.source import declared_encoding, decode_source, parse_or_none
from gametape.verify.integrity.code_view import TaskContext, submitted_code
from gametape.verify.integrity.registry import RuleFinding, code_rule, workspace_rule
from gametape.verify.submission import Submission

_READABLE = re.compile(
    r"utf-?8(-sig)?|ascii|us-ascii|iso-?8859-?\d+|latin-?\d*|cp\d+|windows-\d+|koi8-[ru]|mac-roman|"
    r"shift[-_]?jis|euc[-_]\w+|gb\w+|big5\w*|utf-?16|utf-?32",
    re.IGNORECASE,
)


@workspace_rule(
    "special-case.unreadable",
    "suspect",
    "a Python file is written so that it cannot be read: in a coding that hides its text, or too large or deep",
    "only files that Python itself can run, and that the task does not have like that; the usual codings are free",
)
def is_unreadable_file(submission: Submission) -> Iterator[RuleFinding]:
    read = {code.path for code in submitted_code(submission).modules}
    for path in submission.changed_sources:
        if not path.endswith(".py"):
            continue
        content = submission.sources.files[path]
        coding = declared_encoding(content)
        if coding and not _READABLE.fullmatch(coding) and _is_coding(coding):
            yield RuleFinding(f"coding {coding}", file=path, line=1)
        elif path not in read and resolve_module(path, decode_source(content)) is None and parse_or_none(content):
            yield RuleFinding(f"{len(content):,} bytes, nested or large beyond reading", file=path)


def _is_coding(name: str) -> bool:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return True


_UNSEALING = frozenset(("marshal.loads", "pickle.loads", "_pickle.loads", "dill.loads", "cloudpickle.loads"))


@code_rule(
    "special-case.sealed-data",
    "suspect",
    "product code unpacks an object from bytes that are written into it",
    "only constants: reading a stored file, a message or one's own dump is free; tables that are meant to be read are "
    "written as literals",
)
def carries_opaque_data(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.calls:
        if (
            name in _UNSEALING
            and node.args
            and isinstance(code.folded_or_default(_innermost(node.args[0])), bytes | str)
        ):
            yield RuleFinding(name, line=code.line_of(node), key="sealed data")


def _innermost(node: ast.expr) -> ast.expr:
    """What is decoded or unpacked first: `zlib.decompress(base64.b64decode(b"..."))` carries `b"..."`."""
    while isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return node
