"""The difficulty prior: how hard a task looks before any policy has tried it.

It sums several counts of the code to write, each on a logarithmic scale: the tenth function adds less than the second.
What the agent is shown is subtracted. More to write never lowers the prior, and more to see never raises it. A measured
pass rate replaces it.
"""

import ast
import math
from collections.abc import Collection, Mapping
from typing import Literal

from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.removal.python_source import (
    FunctionNode,
    NotPythonError,
    body_after_docstring,
    source_from_text,
)

VisibleContext = Literal["docstrings", "tests"]

_SCALES = {
    "lines": (8.0, 0.40),
    "functions": (2.0, 0.15),
    "files": (1.0, 0.15),
    "cyclomatic": (5.0, 0.30),
    "call_depth": (1.0, 0.15),
    "fail_to_pass": (10.0, 0.10),
}
"""By component: its scale, and the weight of one doubling in the log odds."""
_SHOWN: dict[VisibleContext, float] = {"docstrings": -0.5, "tests": 0.75}
_EASIEST = -3.0
"""The log odds for no code at all: a prior of 0.05."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_DECISIONS = (*_LOOPS, ast.If, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case)


def difficulty_prior(
    sources: Mapping[str, str], deleted: Collection[Function], fail_to_pass: int, shown: VisibleContext
) -> tuple[float, dict[str, float]]:
    """The prior, from 0 to 1, and its components. `sources` are the files before the deletion, by path.

    logit(prior) = -3 + sum over components of weight * log2(1 + amount / scale) + weight of what is shown
    """
    nodes = [node for function in deleted if (node := _node(sources, function)) is not None]
    components = {
        "lines": float(sum(len(_code_lines(node)) for node in nodes)),
        "functions": float(len(nodes)),
        "files": float(len({function.path for function in deleted})),
        "cyclomatic": float(sum(_cyclomatic(node) for node in nodes)),
        "call_depth": float(_call_depth(nodes)),
        "fail_to_pass": float(fail_to_pass),
        "shown": _SHOWN[shown],
    }
    effort = sum(weight * math.log2(1 + components[name] / scale) for name, (scale, weight) in _SCALES.items())
    return 1 / (1 + math.exp(-(_EASIEST + effort + components["shown"]))), components


def _node(sources: Mapping[str, str], function: Function) -> FunctionNode | None:
    try:
        return source_from_text(sources[function.path].removeprefix("\ufeff")).functions.get(function.line)
    except NotPythonError:
        return None


def _code_lines(node: FunctionNode) -> set[int]:
    """Lines of the body with code. A string over many lines counts as one: writing it takes no thought."""
    lines: set[int] = set()
    for statement in body_after_docstring(node.body):
        for part in ast.walk(statement):
            line = getattr(part, "lineno", None)
            if line is not None:
                lines.add(line)
    return lines


def _cyclomatic(node: FunctionNode) -> int:
    """The cyclomatic complexity: one, and one more for each decision."""
    parts = [*ast.walk(node)]
    return (
        1
        + sum(isinstance(part, _DECISIONS) for part in parts)
        + sum(len(part.values) - 1 for part in parts if isinstance(part, ast.BoolOp))
    )


def _call_depth(nodes: list[FunctionNode]) -> int:
    """The longest chain of calls among the functions, matched by name. All functions of a cycle count."""
    calls: dict[str, set[str]] = {node.name: set() for node in nodes}
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                name = getattr(part.func, "attr", getattr(part.func, "id", ""))
                if name in calls:
                    calls[node.name].add(name)
    reached = {name: _reached(calls, name) for name in calls}
    circles = {name: {name, *(other for other in reached[name] if name in reached[other])} for name in calls}
    depths: dict[str, int] = {}
    for name in sorted(calls, key=lambda other_name: (len(reached[other_name] | {other_name}), other_name)):
        below = (depths[other] for other in reached[name] - circles[name])
        depths[name] = len(circles[name]) + max(below, default=0)
    return max(depths.values(), default=0)


def _reached(calls: Mapping[str, set[str]], name: str) -> set[str]:
    reached: set[str] = set()
    waiting = [*calls[name]]
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += calls[other]
    return reached
