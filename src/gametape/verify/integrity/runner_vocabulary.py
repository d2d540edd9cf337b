"""Names and words that belong to the test runner: rules look for them in product code."""

import ast
import re

from gametape.syntax.resolved_module import ResolvedModule

RUNNER_MODULES = frozenset({"pytest", "_pytest", "pluggy", "py.test", "xdist", "pytest_timeout", "nose", "nose2"})
_LOCAL_WORD = re.compile(
    r"^(item|items|session|nextitem|pyfuncitem|testfunction|request|expected|want|wanted|answer|nonce|secret)$"
)


def top_level_module(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def is_runner_name(name: str) -> bool:
    """Whether a dotted name belongs to the test runner."""
    head = top_level_module(name)
    return head in RUNNER_MODULES or head.startswith("pytest_") or (head == "unittest" and not _is_mock(name))


def _is_mock(name: str) -> bool:
    return name.startswith("unittest.mock")


def mentioned_words(code: ResolvedModule, node: ast.AST) -> list[str]:
    """Texts, attributes and names below a node."""
    words: list[str] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            words.append(inner.attr)
        elif isinstance(inner, ast.Name):
            words.append(inner.id)
            if (name := code.resolve(inner)) and is_runner_name(name):
                words.append(name)
        elif isinstance(inner, ast.expr) and isinstance(value := code.folded_or_default(inner), str):
            words.append(value)
    return words


def runner_local_mention(code: ResolvedModule, node: ast.AST) -> str | None:
    texts = [
        value for inner in ast.walk(node) if isinstance(inner, ast.expr) and (value := code.folded_or_default(inner))
    ]
    return next((text for text in texts if isinstance(text, str) and _LOCAL_WORD.search(text)), None)
