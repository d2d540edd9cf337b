"""Layer `quality`: the quality of the lines that the submission added or changed.

Four parts, the last only where a run measured it: complexity beyond the level of the task's own code, dead code,
repeated code, and the share of the written statements that the tests ran. As much of each as the reference has is free.
"""

import ast
from collections.abc import Iterator

from gametape.core.verdict import Check
from gametape.record.source_tree import SourceTree
from gametape.verify.layers import code_metrics, code_shape
from gametape.verify.layers.code_metrics import complexity
from gametape.verify.layers.context import ScoringContext
from gametape.verify.layers.new_findings import finding_score, summarize
from gametape.verify.layers.tree_change import TreeChange
from gametape.verify.result_counts import feature_tests
from gametape.verify.static_analysis.python_source import functions, parse_source

NAME = "quality"

COMPLEXITY, DEAD, REPEATED, COVERAGE = 0.3, 0.2, 0.2, 0.3

ORDINARY_COMPLEXITY = 10
"""Complexity up to this level is free, however simple the task's own code is."""

Part = tuple[float, float, list[str]]
"""Weight, score and the worst offenders."""


def score(context: ScoringContext) -> Check | None:
    asked = context.start if context.reference_change is None else context.reference_change.files
    if not any(path.endswith(".py") for path in asked):
        return None  # the task is about something else
    written = {path: lines for path in context.sources if (lines := context.change.lines(path))}
    modules = _parsed(context.sources)
    if unreadable := [path for path in written if path.endswith(".py") and path not in modules]:
        return context.check(NAME, 0.0, f"cannot be parsed: {summarize(unreadable)}")
    parts = [_complexity(context, modules), _dead(context, modules), _repeated(context, modules)]
    parts += [part] if (part := _coverage(context, modules)) else []
    total = sum(weight * value for weight, value, _ in parts) / sum(weight for weight, _, _ in parts)
    offenders = [offender for _, _, some in parts for offender in some[:3]]
    return context.check(NAME, total, summarize(offenders, most=8) if offenders else "nothing to complain about")


def _parsed(tree: SourceTree) -> dict[str, ast.Module]:
    modules = {path: parse_source(content) for path, content in tree.files.items() if path.endswith(".py")}
    return {path: module for path, module in modules.items() if module is not None}


def _complexity(context: ScoringContext, modules: dict[str, ast.Module]) -> Part:
    own = _parsed(context.start if context.reference is None else context.reference)
    level = max(
        [ORDINARY_COMPLEXITY, *(complexity(function) for module in own.values() for _, function in functions(module))]
    )
    complex_functions = []
    for path, module in modules.items():
        for name, function in functions(module):
            body = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            if context.change.lines(path).intersection(body) and (value := complexity(function)) > level:
                complex_functions.append(
                    (value, f"{path}:{function.lineno}: {name} has complexity {value}, the level is {level}")
                )
    excess = sum(value - level for value, _ in complex_functions) / level
    return COMPLEXITY, 1 / (1 + excess), [text for _, text in sorted(complex_functions, reverse=True)]


def _dead(context: ScoringContext, modules: dict[str, ast.Module]) -> Part:
    unused = list(_dead_code(context, modules, context.change))
    if context.reference is not None and context.reference_change is not None:
        tolerated = len(list(_dead_code(context, _parsed(context.reference), context.reference_change)))
    else:
        tolerated = 0
    return (
        DEAD,
        finding_score(max(0, len(unused) - tolerated), context.task_lines),
        unused if len(unused) > tolerated else [],
    )


def _dead_code(context: ScoringContext, modules: dict[str, ast.Module], change: TreeChange) -> Iterator[str]:
    tests = _parsed(context.submission.loaded_task.suite)
    used = frozenset[str]().union(
        *(code_metrics.mentioned_names(module) for module in (*modules.values(), *tests.values()))
    )
    for path, module in modules.items():
        lines = change.lines(path)
        if not lines:
            continue
        unused = (
            (line, f"`{name}` is never used")
            for line, name in code_metrics.callable_definitions(module)
            if name not in used
        )
        for line, what in (
            *code_metrics.unreachable_statements(module),
            *code_metrics.unused_variables(module),
            *unused,
        ):
            if line in lines:
                yield f"{path}:{line}: {what}"


def _repeated(context: ScoringContext, modules: dict[str, ast.Module]) -> Part:
    share, repeats = _repetition(modules, context.change)
    if context.reference is not None and context.reference_change is not None:
        share = max(0.0, share - _repetition(_parsed(context.reference), context.reference_change)[0])
    return REPEATED, 1 - share, repeats if share else []


def _repetition(modules: dict[str, ast.Module], change: TreeChange) -> tuple[float, list[str]]:
    """The share of the written lines that repeats other code, and where each copy begins."""
    written = {path: change.lines(path) for path in modules}
    copies = code_shape.find_copies(modules, written)
    total = sum(len(lines) for lines in written.values())
    begins = sorted((file, line) for file, line in copies if (file, line - 1) not in copies)
    texts = [f"{file}:{line}: repeats {copies[file, line].file}:{copies[file, line].first}" for file, line in begins]
    return (len(copies) / total if total else 0.0), texts


def _coverage(context: ScoringContext, modules: dict[str, ast.Module]) -> Part | None:
    """None where a test of the feature was not traced, as replayed ones are not: its lines would seem never to run."""
    traced = [run for run in context.runs if run.covered]
    tests = context.submission.loaded_task.task.tests
    asked = frozenset[str]().union(*(run.outcomes for run in traced))
    if not traced or not asked.issuperset(feature_tests(tests) or tests.every):
        return None
    measured = [run.covered for run in traced]
    wanted, missed = 0, []
    for path, module in modules.items():
        ran = frozenset[int]().union(*(covered.get(path, frozenset()) for covered in measured))
        for first, last in code_metrics.traceable_statements(module):
            if first in context.change.lines(path):
                wanted += 1
                missed += [f"{path}:{first}: never ran"] if ran.isdisjoint(range(first, last + 1)) else []
    return COVERAGE, 1 - len(missed) / wanted if wanted else 1.0, sorted(missed)
