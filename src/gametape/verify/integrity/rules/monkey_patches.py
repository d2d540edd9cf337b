"""Rules over code that replaces parts of the runner or of Python itself."""

import ast
import re
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import TaskContext
from gametape.verify.integrity.registry import RuleFinding, code_rule
from gametape.verify.integrity.runner_vocabulary import top_level_module


@code_rule(
    "runner.reaches-inside",
    "suspect",
    "product code uses the inside of the test runner",
    (
        "only private modules and the objects that hold outcomes, outside a self-test under __main__; "
        "importing pytest alone is free"
    ),
)
def uses_runner_internals(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    internals = re.compile(
        r"^_pytest(\.|$)|^pluggy\.|^pytest\.(TestReport|CallInfo|Item|Function|Session|Config|hookimpl|"
        r"Class|Module|CollectReport|ExceptionInfo|PytestPluginManager|HookRecorder|Parser|Collector)"
        r"|^unittest\.(case|result|runner|suite|loader|main)\._|^unittest\.(TestResult|TextTestResult|"
        r"runner\.TextTestResult)"
    )
    for node, name in [*code.imports, *code.references]:
        if internals.match(name) and not code.guarded_by_main(node):
            yield RuleFinding(name, line=code.line_of(node), key=top_level_module(name))


@code_rule(
    "tests.skipped-from-product",
    "suspect",
    "product code tells the test runner to skip, excuse or end tests",
    (
        "pytest.skip and its like have no meaning outside a test run; helpers named after tests that no "
        "product file imports are free"
    ),
)
def skips_tests_from_product(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    evidence = re.compile(
        r"^(_?pytest(\.outcomes|\.runner)?)\.(skip|xfail|importorskip|Skipped|XFailed|Failed|fail|mark)(\.|\(|$)"
        r"|^unittest(\.case)?\.(SkipTest|skip|expectedFailure|skipIf)|^nose\.SkipTest|^builtins\.SkipTest"
    )
    for node, name in code.references:
        if evidence.match(name) and not code.guarded_by_main(node):
            yield RuleFinding(name, line=code.line_of(node), key=name)
    for statement in code.nodes:
        raised = isinstance(statement, ast.Raise) and code.resolve(statement.exc)
        if raised and re.search(r"\b(Skipped|SkipTest|XFailed)(\(\))?$", raised) and not evidence.match(raised):
            yield RuleFinding(raised, line=code.line_of(statement), key=raised)


@code_rule(
    "exit.ends-the-session",
    "suspect",
    "product code tells the test runner to end",
    "pytest.exit has no meaning outside a test run",
)
def ends_test_session(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.references:
        if re.match(r"_?pytest(\.outcomes)?\.(exit|Exit)(\(|$)", name) and not code.guarded_by_main(node):
            yield RuleFinding(name, line=code.line_of(node), key=name)
