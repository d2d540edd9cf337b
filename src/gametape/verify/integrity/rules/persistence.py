"""Rules over code that outlives the run or leaves something behind for the next."""

import ast
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import TaskContext
from gametape.verify.integrity.registry import RuleFinding, code_rule


@code_rule(
    "persistence.made-byte-code",
    "suspect",
    "product code puts byte code of its own making where the interpreter looks for it",
    "finding a cached file in order to delete it, and compiling files the ordinary way, are free",
)
def writes_byte_code(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    names = {name for _, name in code.calls} | {name for _, name in code.references}
    writes = any(
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("write_bytes", "write") for node in code.nodes
    )
    makes = names & {"marshal.dumps", "marshal.dump", "importlib.util.MAGIC_NUMBER", "importlib.util.source_hash"}
    for node, name in code.calls:
        if name == "importlib.util.cache_from_source" and writes and makes:
            yield RuleFinding(name, line=code.line_of(node), key="byte code")
