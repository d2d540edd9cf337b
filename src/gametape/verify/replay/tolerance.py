"""Whether a test may catch an exception of the code that it calls, read from its file and the suite's helper files."""

import ast
import functools
from collections.abc import Iterator

from gametape.record.source_tree import SourceTree
from gametape.syntax.source import parse_or_none
from gametape.verify import jobs

_CATCHING_NAMES = frozenset({"raises", "suppress", "assertRaises", "assertRaisesRegex", "xfail", "warns"})
_CATCHING_NODES = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)


@functools.lru_cache(maxsize=8192)
def may_catch(suite: SourceTree, test: str) -> bool:
    """Whether the test's function, or anything in its file or a helper file that is no test function, has a `try`, a
    `with` or one of pytest's ways to expect an exception."""
    file, function = jobs.function_of(test)
    helpers = (path for path in suite if path.endswith(".py") and not _is_test_file(path))
    own = function.rpartition("::")[2]
    return own in _catching_tests(suite.files[file]) or any(
        "" in _catching_tests(suite.files[path]) for path in (file, *helpers)
    )


def _is_test_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py")


@functools.lru_cache(maxsize=512)
def _catching_tests(content: bytes) -> frozenset[str]:
    """The test functions of a file that may catch something; the empty name stands for the rest of the file."""
    tree = parse_or_none(content)
    return frozenset(_owners_of_catching_nodes(tree)) if tree else frozenset({""})


def _owners_of_catching_nodes(tree: ast.Module) -> Iterator[str]:
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, owner = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not owner and node.name.startswith("test"):
            owner = node.name
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, _CATCHING_NODES) or name in _CATCHING_NAMES:
            yield owner
        waiting += ((child, owner) for child in ast.iter_child_nodes(node))
