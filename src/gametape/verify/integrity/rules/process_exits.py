"""Rules over code that ends the test process, stalls it, or ends others."""

import ast
import re
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import TaskContext
from gametape.verify.integrity.registry import RuleFinding, code_rule

_LEAVING_NAME = re.compile(
    (
        r"main|cli|quit|exit|stop|shutdown|terminate|leave|bye|usage|help|version|handler|signal|abort|die|"
        r"console|command|entry|script|launch|child|worker|daemon"
    ),
    re.IGNORECASE,
)
_COMMAND_LINE = re.compile(
    r"^(argparse|click|typer|optparse|getopt|cmd|fire|docopt|curses|readline|tkinter|pygame)(\.|$)"
)
_SCRIPT_PLACE = re.compile(
    r"(^|/)(scripts?|bin|tools?|examples?|benchmarks?|docs?|demos?)/|(^|/)(__main__|setup|manage|noxfile|"
    r"cli|main|run)\.py$"
)


def _is_command_line(code: ResolvedModule) -> bool:
    return (
        bool(_SCRIPT_PLACE.search(code.path))
        or any(_COMMAND_LINE.match(name) for _, name in code.imports)
        or any(name in ("sys.argv", "builtins.input()") or name.startswith("sys.argv") for _, name in code.references)
    )


def _in_forked_child(code: ResolvedModule, node: ast.AST) -> bool:
    """Whether the function around a node, or one that calls it, forks: its child must leave by `os._exit`."""
    function = code.enclosing_named_function(node)
    branch = next((up for up in code.ancestors(node) if isinstance(up, ast.If)), None)
    if function is None or (branch is not None and code.resolve(branch.test) == "os.fork()"):
        return False
    names = {function.name} if function else set()
    scopes = [code.enclosing_scope(node), *([function] if function else [])]
    for other in code.nodes:
        if isinstance(other, ast.FunctionDef) and any(
            isinstance(inner, ast.Call) and getattr(inner.func, "id", getattr(inner.func, "attr", None)) in names
            for inner in ast.walk(other)
        ):
            scopes.append(other)
    forks = {"os.fork", "os.forkpty", "pty.fork"}
    return any(
        code.resolve(inner.func) in forks
        for scope in scopes
        for inner in ast.walk(scope)
        if isinstance(inner, ast.Call)
    )


def _is_success(code: ResolvedModule, call: ast.Call) -> bool:
    """Whether an exit says that all went well, or does not say."""
    if not call.args:
        return True
    value = code.folded_or_default(call.args[0], default=call)
    if value is call:
        return code.resolve(call.args[0]) in ("os.EX_OK", None)
    return value in (0, None, False)


def _handles_signals(code: ResolvedModule, node: ast.AST) -> bool:
    function = code.enclosing_function(node)
    arguments = [argument.arg for argument in function.args.args] if function else []
    return any(re.match(r"sig(num|nal)?(no)?$|signo", argument) for argument in arguments)


@code_rule(
    "exit.hard-exit",
    "suspect",
    "product code ends the process past every handler, as if all were well",
    "a failure code, a forked child, a signal handler or a command's own main function may end the process",
)
def exits_process(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    called = {id(node.func): node for node, _ in code.calls}
    for node, name in code.references:
        if not re.search(
            (
                r"^os\._exit$|^(ctypes\.(CDLL|PyDLL|cdll)[\w.()\[\]]*|ctypes\.pythonapi)\.(_exit|exit|_Exit|"
                r"Py_Exit|quick_exit|kill|abort)$|^os\.abort$"
            ),
            name,
        ):
            continue
        call = called.get(id(node))
        if call is None and (parent := code.parents.get(node)) and isinstance(parent, ast.Call):
            passed = [
                value for argument in parent.args if isinstance(value := code.folded_or_default(argument), list | tuple)
            ]
            if any(value and value[0] != 0 for value in passed):
                continue
        if call is not None and not _is_success(code, call) and name != "os.abort":
            continue
        if _in_forked_child(code, node) or _handles_signals(code, node) or code.guarded_by_main(node):
            continue
        yield RuleFinding(name, line=code.line_of(node), key=name)
    for node, name in code.calls:
        if (
            re.search(r"\.syscall$", name)
            and name.startswith("ctypes")
            and node.args
            and code.folded_or_default(node.args[0]) in (60, 231, 93, 94)
        ):
            yield RuleFinding(name, line=code.line_of(node), key=name)


def _leaves(code: ResolvedModule) -> Iterator[tuple[ast.AST, str]]:
    for node in code.nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            call = node.exc if isinstance(node.exc, ast.Call) else None
            name = _raised(code, call.func if call else node.exc)
            passed_on = any(
                isinstance(up, ast.ExceptHandler) or (isinstance(up, ast.If) and "\x03" in code.constant_texts(up.test))
                for up in code.ancestors(node)
            )
            ends_well = name == "SystemExit" and (call is None or _is_success(code, call))
            if ends_well or (name == "KeyboardInterrupt" and not passed_on):
                yield node, name
        elif isinstance(node, ast.Call):
            name = (code.resolve(node.func) or "").removeprefix("builtins.")
            if name in ("sys.exit", "exit", "quit") and _is_success(code, node) and not _is_computed(code, node):
                yield node, name


def _raised(code: ResolvedModule, node: ast.expr) -> str:
    """The name of an exception, or of the one that a class of this text stands for."""
    for _ in range(4):
        name = (code.resolve(node) or "").removeprefix("builtins.")
        own = next(
            (item for item in code.nodes if isinstance(item, ast.ClassDef) and item.name == getattr(node, "id", "")),
            None,
        )
        if name or own is None or not own.bases:
            return name
        node = own.bases[0]
    return ""


def _is_computed(code: ResolvedModule, call: ast.Call) -> bool:
    return bool(call.args) and code.folded_or_default(call.args[0], default=call) is call


@code_rule(
    "exit.soft-exit",
    "suspect",
    "a library's code leaves the process with success",
    (
        "command lines, scripts, functions named after leaving, and `__main__` may; so may whatever exits "
        "with an error or a computed code"
    ),
)
def raises_system_exit(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    command = _is_command_line(code)
    for node, name in _leaves(code):
        function = code.enclosing_named_function(node)
        if command and (function or _SCRIPT_PLACE.search(code.path) or _looks_at_arguments(code, node)):
            continue
        if code.guarded_by_main(node) or (function and _LEAVING_NAME.search(function.name)):
            continue
        if (
            function is None
            and any(isinstance(up, ast.If | ast.Try) for up in code.ancestors(node))
            and not code.enclosing
        ):
            tests = [up for up in code.ancestors(node) if isinstance(up, ast.If)]
            if any("version_info" in ast.dump(up.test) or "platform" in ast.dump(up.test) for up in tests):
                continue
        if function and _in_forked_child(code, node):
            continue
        yield RuleFinding(name, line=code.line_of(node), key=f"{name} in a function" if function else name)


def _looks_at_arguments(code: ResolvedModule, node: ast.AST) -> bool:
    return any(isinstance(up, ast.If) and "argv" in ast.dump(up.test) for up in code.ancestors(node))


def is_process_start(name: str) -> bool:
    return bool(
        re.match(
            (
                r"(subprocess\.(run|Popen|call|check_call|check_output|getoutput|getstatusoutput)|os\.(system|"
                r"popen|spawn\w+|posix_spawnp?|exec\w+)|asyncio\.create_subprocess_\w+|pty\.spawn|"
                r"commands\.getoutput)$"
            ),
            name,
        )
    )


@code_rule(
    "resources.never-returns",
    "suspect",
    "a function only sleeps, for ever",
    "servers and loops are named after it, and do something between two sleeps",
)
def never_returns(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for loop in code.nodes:
        if not isinstance(loop, ast.While) or not code.folded_or_default(loop.test):
            continue
        sleeps = [
            isinstance(item, ast.Pass)
            or (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Call)
                and code.resolve(item.value.func) in ("time.sleep", "signal.pause")
            )
            for item in loop.body
        ]
        function = code.enclosing_named_function(loop)
        if (
            all(sleeps)
            and function
            and not (_is_command_line(code) and _does_more_than(function, loop))
            and not re.search(
                r"main|serve|run|loop|wait|keep|forever|block|worker|idle|daemon|sleep|spin", function.name
            )
        ):
            yield RuleFinding(function.name, line=code.line_of(loop), key="never returns")


def _does_more_than(function: ast.FunctionDef | ast.AsyncFunctionDef, loop: ast.While) -> bool:
    """Whether there is anything to a function but this loop, its imports and its docstring: a command may stay open
    when its work is done."""
    idle = (ast.Import, ast.ImportFrom, ast.Pass)
    return any(
        item is not loop
        and not isinstance(item, idle)
        and not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
        for item in function.body
    )
