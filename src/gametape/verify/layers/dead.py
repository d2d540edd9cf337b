"""Code that nothing uses or reaches, found without running it. What cannot be told for sure is not reported."""

import ast
import functools
import itertools
import re
from collections.abc import Iterator

from gametape.verify.tools.source import Function, blocks, functions, walk_blocks

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST_STRING = 1000


def unreachable(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Statements behind one that always leaves the block, and branches of a constant that is false."""
    for node in walk_blocks(module):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for one, after in itertools.pairwise(block) if isinstance(block, list) else ():
                if isinstance(one, _ENDS) and not _makes_generator(after):
                    yield after.lineno, "is never reached"
                    break
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
            yield node.body[0].lineno, "is never reached"


def unused_variables(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Locals that are assigned by themselves and never read, in functions that do nothing to hide that."""
    for _, function in functions(module):
        inside = list(ast.walk(function))
        if any(isinstance(node, ast.Name) and node.id in ("locals", "eval", "exec", "vars") for node in inside):
            continue
        shared = {name for node in inside if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        read = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
        for target in _assigned(function):
            if target.id not in read | shared and not target.id.startswith("_"):
                yield target.lineno, f"`{target.id}` is never used"


def defined(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions that only a call by name could use, with their line.

    Left out: special names, anything with a decorator, and methods of classes with bases, which may be called by what
    they inherit from.
    """
    inherited = {
        id(inner)
        for node in walk_blocks(module)
        if isinstance(node, ast.ClassDef) and (node.bases or node.keywords or node.decorator_list)
        for inner in node.body
    }
    for _, function in functions(module):
        special = function.name.startswith("__") and function.name.endswith("__")
        if not special and not function.decorator_list and id(function) not in inherited:
            yield function.lineno, function.name


@functools.lru_cache(maxsize=256)
def mentioned(module: ast.Module) -> frozenset[str]:
    """Every name that is read, imported or spelled in a string anywhere."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_WORD.findall(node.value[:_LONGEST_STRING]))
    return frozenset(found)


def _assigned(function: Function) -> Iterator[ast.Name]:
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, Function | ast.ClassDef):
            continue
        if isinstance(node, ast.Assign):
            yield from (target for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target
        todo.extend(blocks(node))


def _makes_generator(node: ast.stmt) -> bool:
    """`return` and then `yield` is how an empty generator is written."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)
