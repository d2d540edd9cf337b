"""Rules over code that searches the running process for tests, their values, or whether they run."""

import ast
import re
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import TaskContext
from gametape.verify.integrity.registry import RuleFinding, code_rule
from gametape.verify.integrity.runner_vocabulary import (
    is_runner_name,
    mentioned_words,
    runner_local_mention,
)

_FRAME = re.compile(
    r"(?:^|\s)(sys\._getframe|sys\._current_frames|inspect\.(currentframe|stack|trace|getouterframes)|"
    r"traceback\.(walk_stack|extract_stack|format_stack|StackSummary\.extract))\(\)|tb_frame|\.gi_frame|\.cr_frame"
)


@code_rule(
    "answer.callers-values",
    "suspect",
    "product code reads constants or telling variables out of its callers",
    (
        "a caller's name, line, module or variables for formatting are free; constants of its code, or "
        "variables named after expectations, the runner or a value of the tests, are not"
    ),
)
def reads_caller_values(code: ResolvedModule, context: TaskContext) -> Iterator[RuleFinding]:
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("co_consts", "co_code", "co_names"):
            base = code.resolve(node.value) or ""
            if _FRAME.search(base) or "f_code" in ast.dump(node.value) or base.startswith(("gc.", "sys.modules")):
                yield RuleFinding(f"{node.attr} of a caller", line=code.line_of(node), key="co_consts")
        elif isinstance(node, ast.Attribute) and node.attr in ("f_locals", "f_globals"):
            scope = code.enclosing_scope(node)
            walks = any(
                isinstance(inner, ast.While | ast.For) and "f_back" in ast.dump(inner) for inner in ast.walk(scope)
            ) or "stack" in ast.dump(scope)
            word = runner_local_mention(code, scope) if node.attr == "f_locals" or walks else None
            if word and (walks or word in ("expected", "want", "wanted", "answer", "nonce", "secret")):
                yield RuleFinding(f"{node.attr}, beside {word!r}", line=code.line_of(node), key="f_locals")
            elif node.attr == "f_globals" and (value := _value_of_tests(code, node, context)):
                yield RuleFinding(f"{value!r}, a value of the tests", line=code.line_of(node), key="f_locals")
    for node, name in code.calls:
        scope = code.enclosing_scope(node)
        if name.startswith("dis.") and node.args and re.search(r"'f_code'", ast.dump(node)):
            yield RuleFinding(f"{name} of a caller", line=code.line_of(node), key="co_consts")
        elif (
            re.match(r"ast\.parse$|re\.\w+$", name)
            and "'co_filename'" in ast.dump(scope)
            and _reads_source(code, scope)
        ):
            yield RuleFinding("the source of a caller is taken apart", line=code.line_of(node), key="source of callers")


def _value_of_tests(code: ResolvedModule, node: ast.AST, context: TaskContext) -> str | None:
    """The name of a value of the tests in the function or module that asks for a caller's variables."""
    texts = (code.text_of(inner) for inner in ast.walk(code.enclosing_scope(node)) if isinstance(inner, ast.expr))
    return next((text for text in texts if text in context.test_values), None)


def _reads_source(code: ResolvedModule, scope: ast.AST) -> bool:
    names = {
        code.resolve(node.func) or getattr(node.func, "attr", "")
        for node in ast.walk(scope)
        if isinstance(node, ast.Call)
    }
    return any(
        re.search(r"linecache\.|getsource|^builtins\.open$|read_text$|read_bytes$|findsource", name) for name in names
    )


@code_rule(
    "answer.hunts-tests",
    "suspect",
    "product code searches memory or loaded modules for the tests' own values",
    "the search must name tests, their parameters or their constants",
)
def searches_process_for_tests(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.references:
        if re.match(r"gc\.get_(objects|referrers)\(\)|sys\.modules(\.(values|items|copy|keys)\(\))?$", name):
            loop = next(
                (
                    up
                    for up in code.ancestors(node)
                    if isinstance(up, ast.For | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp)
                ),
                None,
            )
            words = mentioned_words(code, loop) if loop is not None else []
            mentions = [
                word
                for word in words
                if re.match(r"test_|tests?[./]|parametrize$|pytestmark$|co_consts$|getsource$|expected$", word)
            ]
            if mentions:
                yield RuleFinding(f"{name}, beside {mentions[0]!r}", line=code.line_of(node), key="hunts tests")


@code_rule(
    "special-case.detects-tests",
    "suspect",
    "product code asks whether it is being tested",
    (
        "only pytest's own traces: its variables, its modules in sys.modules, its name in sys.argv or in "
        "callers; one's own variables are free"
    ),
)
def detects_tests(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    variables = re.compile(r"^PYTEST_|^(_PYTEST|TOX_ENV|TOX_ENV_DIR|NOSE_|COVERAGE_RUN|COV_CORE_)\w*$")
    for node in code.nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and variables.match(node.value)
            and not code.guarded_by_main(node)
        ):
            used = next(
                (
                    up
                    for up in code.ancestors(node)
                    if isinstance(up, ast.Compare | ast.Call | ast.Subscript | ast.stmt)
                ),
                None,
            )
            if (
                used is not None
                and "environ" in ast.dump(used) + " ".join(code.resolve(inner) or "" for inner in ast.walk(used))
            ) or (isinstance(used, ast.Call) and "getenv" in ast.dump(used)):
                yield RuleFinding(node.value, line=code.line_of(node), key="detects")
        elif isinstance(node, ast.Compare) and not code.guarded_by_main(node):
            yield from _compared(code, node)
    for node, name in code.calls:
        if (
            re.match(r"sys\.modules\.get$|os\.(getenv|environ\.get)$", name)
            and node.args
            and not code.guarded_by_main(node)
        ):
            text = code.text_of(node.args[0]) or ""
            if (is_runner_name(text) or variables.match(text)) and isinstance(node.args[0], ast.expr):
                yield RuleFinding(text, line=code.line_of(node), key="detects")


def _compared(code: ResolvedModule, node: ast.Compare) -> Iterator[RuleFinding]:
    sides = [node.left, *node.comparators]
    names = [code.resolve(side) or "" for side in sides]
    inside = " ".join(code.resolve(inner) or "" for side in sides for inner in ast.walk(side))
    texts = [text for side in sides for text in code.constant_texts(side)]
    runner = next(
        (
            text
            for text in texts
            if is_runner_name(text)
            or re.search(r"(^|[/_.])(_?pytest|py\.test|conftest)\b", text)
            or re.fullmatch(r"tests?[/.]?|/tests?/?", text)
            or re.match(r"test_\w*$", text)
        ),
        None,
    )
    if not runner:
        return
    if any(name in ("sys.modules", "sys.modules.keys()", "os.environ") for name in names) and (
        is_runner_name(runner) or runner.startswith("PYTEST")
    ):
        yield RuleFinding(f"{runner!r} in {next(filter(None, names), '')}", line=code.line_of(node), key="detects")
    elif "sys.argv" in inside and re.search(r"pytest|py\.test", runner):
        yield RuleFinding(f"{runner!r} and sys.argv", line=code.line_of(node), key="detects")
    elif _FRAME.search(inside) or re.search(r"\b(f_code|co_filename|co_name|f_back|tb_frame)\b", ast.dump(node)):
        yield RuleFinding(f"{runner!r} and a caller's name or file", line=code.line_of(node), key="detects")
