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


@code_rule(
    "exit.by-timer",
    "suspect",
    "product code sets a timer that ends or interrupts the process",
    "only timers that end the whole process by themselves, and interrupts that are armed while the module is imported",
)
def exits_by_timer(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.calls:
        if (
            name == "faulthandler.dump_traceback_later"
            and not code.guarded_by_main(node)
            and not _is_command_line(code)
        ):
            leaves = [word.value for word in node.keywords if word.arg == "exit"] + node.args[3:4]
            if any(code.folded_or_default(value) for value in leaves):
                yield RuleFinding(name, line=code.line_of(node), key=name)
    for reference, name in code.references:
        imported = code.enclosing_function(reference) is None and not code.guarded_by_main(reference)
        if imported and name in ("_thread.interrupt_main", "signal.raise_signal"):
            yield RuleFinding(name, line=code.line_of(reference), key=name)


@code_rule(
    "exit.kills-itself",
    "suspect",
    "product code kills or replaces the process it runs in",
    "signals to processes it started, liveness checks with signal 0, forked children and commands are free",
)
def kills_itself(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.calls:
        if not re.match(r"os\.(kill|exec\w+)$|signal\.raise_signal$", name):
            continue
        if code.guarded_by_main(node) or _in_forked_child(code, node):
            continue
        if name == "os.kill" and len(node.args) > 1 and _whom(code, node.args[0]) == "itself":
            if code.folded_or_default(node.args[1], default=9) not in (0, 2, "0") and not re.search(
                r"SIG(INT|USR\d|ALRM|STOP|TSTP|CONT|WINCH|HUP|CHLD)$", code.resolve(node.args[1]) or ""
            ):
                yield RuleFinding("os.kill of its own process", line=code.line_of(node), key="os.kill itself")
        elif (
            name == "signal.raise_signal"
            and node.args
            and re.search(r"SIG(KILL|TERM|ABRT)$", code.resolve(node.args[0]) or "")
        ):
            yield RuleFinding("signal.raise_signal", line=code.line_of(node), key=name)
        elif re.match(r"os\.exec[lv]p?e?$", name):
            function = code.enclosing_named_function(node)
            if re.search(r"(^|/)(true|false|echo|pytest)$", (code.constant_texts(node) or [""])[0]) or (
                not _is_command_line(code)
                and not (function and re.search(r"main|restart|reload|exec|launch|child|spawn", function.name))
            ):
                yield RuleFinding(name, line=code.line_of(node), key=name)


def _whom(code: ResolvedModule, node: ast.expr) -> str:
    name, value = code.resolve(node), code.folded_or_default(node)
    if name == "os.getpid()":
        return "itself"
    if name in ("os.getppid()", "os.getpgrp()", "os.getpgid()", "os.getsid()") or value in (-1, 0, 1):
        return "its parent or group"
    if name and re.search(r"psutil\.Process\(\)\.(parent\(\)|ppid)", name):
        return "its parent or group"
    return "another"


KILL_COMMAND = re.compile(r"\b(pkill|killall|kill\s+-?\w*\s*(\$PPID|-1|1\b)|fuser\s+-k)")


@code_rule(
    "resources.kills-others",
    "suspect",
    "product code kills its parent, its group or processes it looks up",
    "a process it started itself, held in a variable, is free to be killed",
)
def kills_others(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.calls:
        last = name.rsplit(".", 1)[-1]
        if name in ("os.kill", "os.killpg") and len(node.args) > 1 and code.folded_or_default(node.args[1]) != 0:
            if _whom(code, node.args[0]) == "its parent or group" or _from_all_processes(code, node):
                yield RuleFinding(f"{name} of its parent, group or any process", line=code.line_of(node), key=name)
        elif (
            last in ("kill", "terminate", "suspend", "send_signal")
            and "psutil" in name
            and ("parent" in name or "process_iter" in name)
        ):
            yield RuleFinding(name, line=code.line_of(node), key=name)
        elif is_process_start(name) and (match := KILL_COMMAND.search(" ".join(code.constant_texts(node)))):
            yield RuleFinding(f"{name}: {match.group()}", line=code.line_of(node), key=match.group())


def _from_all_processes(code: ResolvedModule, node: ast.Call) -> bool:
    """Whether the process to kill was looked up in /proc by what it is, and what it is has to do with tests."""
    scope = code.enclosing_scope(node)
    texts = code.constant_texts(scope)
    return any(text.startswith("/proc") for text in texts) and any(
        re.search(r"pytest|python|test", text) for text in texts
    )


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
    "resources.stalls",
    "suspect",
    "product code waits longer than any test may run",
    "only while it is imported for an hour or more, or anywhere for more than a day",
)
def stalls_run(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    for node, name in code.calls:
        if name in ("time.sleep", "signal.pause", "select.select") and not code.guarded_by_main(node):
            seconds = code.folded_or_default(node.args[0], default=0) if name == "time.sleep" and node.args else 0
            while_imported = code.enclosing_function(node) is None
            if isinstance(seconds, int | float) and (seconds > 86_400 or (while_imported and seconds >= 600)):
                yield RuleFinding(f"{name}({seconds})", line=code.line_of(node), key=name)
            elif name == "signal.pause" and while_imported:
                yield RuleFinding(name, line=code.line_of(node), key=name)
    for loop in code.nodes:
        if (
            isinstance(loop, ast.While)
            and code.enclosing_function(loop) is None
            and code.folded_or_default(loop.test)
            and not code.guarded_by_main(loop)
        ):
            leaves = (ast.Break, ast.Return, ast.Raise)
            called = {name for node, name in code.calls if any(up is loop for up in code.ancestors(node))}
            if not any(isinstance(inner, leaves) for inner in ast.walk(loop)) and not called & {"sys.exit", "exit"}:
                yield RuleFinding("an endless loop while it is imported", line=code.line_of(loop), key="endless loop")


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


@code_rule(
    "resources.disarms-timer",
    "suspect",
    "product code switches off a timer that it never set",
    "a timeout helper both arms and disarms; only switching off what somebody else armed counts",
)
def disarms_timer(code: ResolvedModule, _context: TaskContext) -> Iterator[RuleFinding]:
    timers = [(node, name) for node, name in code.calls if name in ("signal.alarm", "signal.setitimer")]
    position = {"signal.alarm": 0, "signal.setitimer": 1}
    values = [
        (
            node,
            name,
            code.folded_or_default(node.args[position[name]], default=1) if len(node.args) > position[name] else 1,
        )
        for node, name in timers
    ]
    if values and all(value == 0 for _, _, value in values):
        yield RuleFinding(values[0][1], line=code.line_of(values[0][0]), key="disarm")
    for node, name in code.calls:
        if name == "signal.signal" and len(node.args) > 1 and not values:
            which, how = code.resolve(node.args[0]) or "", code.resolve(node.args[1]) or ""
            if which.endswith(("SIGALRM", "SIGXCPU", "SIGVTALRM", "SIGPROF")) and how.endswith("SIG_IGN"):
                yield RuleFinding(f"{which} ignored", line=code.line_of(node), key="disarm")
