"""A rule over data that product code carries in a form nobody can read."""

import ast
from collections.abc import Iterator

from gametape.verify.integrity.code import Code
from gametape.verify.integrity.rule import Finding, over_code
from gametape.verify.integrity.view import Setting

_UNSEALING = frozenset(("marshal.loads", "pickle.loads", "_pickle.loads", "dill.loads", "cloudpickle.loads"))


@over_code(
    "special-case.sealed-data",
    "suspect",
    "product code unpacks an object from bytes that are written into it",
    "only constants: reading a stored file, a message or one's own dump is free; tables that are meant to be read are "
    "written as literals",
)
def sealed_data(code: Code, _setting: Setting) -> Iterator[Finding]:
    for node, name in code.calls:
        if name in _UNSEALING and node.args and isinstance(code.folded(_innermost(node.args[0])), bytes | str):
            yield Finding(name, line=code.line_of(node), key="sealed data")


def _innermost(node: ast.expr) -> ast.expr:
    """What is decoded or unpacked first: `zlib.decompress(base64.b64decode(b"..."))` carries `b"..."`."""
    while isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return node
