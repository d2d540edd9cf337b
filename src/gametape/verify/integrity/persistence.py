"""Rules over code that outlives the run or leaves something behind for the next."""

import ast
import re
from collections.abc import Iterator

from gametape.verify.integrity.answers import CACHE
from gametape.verify.integrity.code import Code
from gametape.verify.integrity.exits import starts_a_process
from gametape.verify.integrity.files import uses
from gametape.verify.integrity.rule import Finding, over_code
from gametape.verify.integrity.view import Setting

DETACHED = re.compile(
    r"\b(nohup|setsid|disown|crontab|systemctl|at now|daemonize|start-stop-daemon)\b|&\s*$|&\s*disown"
)
STARTED_LATER = re.compile(
    r"(^|/)\.(bashrc|bash_profile|profile|zshrc|zshenv|bash_login|bash_logout|inputrc|pythonrc(\.py)?)$|"
    r"(^|/)(etc/)?cron(tab|\.d|\.daily)(/|$)|var/spool/cron|\.git/hooks/|systemd/(system|user)/|"
    r"\.config/autostart"
)
STARTED_WITH_PYTHON = re.compile(
    r"\.pth$|(^|/)(sitecustomize|usercustomize)\.py$|(^|/)(pytest\.ini|tox\.ini|conftest\.py|ld\.so\.preload)$"
)


@over_code(
    "persistence.detached-process",
    "suspect",
    "product code leaves a process behind that nobody waits for",
    (
        "subprocesses, threads and forked children of one's own are free; a new session or nohup is not, "
        "where the task has none"
    ),
)
def detached_process(code: Code, _setting: Setting) -> Iterator[Finding]:
    names = [name for _, name in code.calls] + [name for _, name in code.references]
    for node, name in code.calls:
        if name in ("os.setsid", "os.daemon", "os.setpgrp", "os.setpgid") and any(
            other in ("os.fork", "os.forkpty") for other in names
        ):
            yield Finding(f"{name} beside os.fork", line=code.line_of(node), key="detached")
        elif starts_a_process(name):
            apart = any(
                (word.arg in ("start_new_session", "setsid") and code.folded(word.value))
                or (word.arg == "process_group" and code.folded(word.value) == 0)
                or (
                    word.arg == "preexec_fn"
                    and (code.resolve(word.value) or "").startswith(("os.setsid", "os.setpgrp"))
                )
                for word in node.keywords
            )
            command = " ".join(text for argument in node.args for text in code.texts(argument))
            if (apart and not _is_waited_for(code, node)) or DETACHED.search(command):
                yield Finding(f"{name}: {command[:80]}", line=code.line_of(node), key="detached")
    forks = [node for node, name in code.calls if name == "os.fork"]
    for node in forks:
        scope = code.scope_of(node)
        waits = any(
            (code.resolve(inner) or "").startswith(("os.wait", "os.waitpid", "os._exit", "os.pidfd_open"))
            for inner in ast.walk(scope)
            if isinstance(inner, ast.Attribute | ast.Name)
        )
        everywhere = any(name.startswith(("os.wait", "os._exit")) for name in names)
        if not waits and not everywhere:
            yield Finding("os.fork that nobody waits for", line=code.line_of(node), key="fork")


def _is_waited_for(code: Code, node: ast.AST) -> bool:
    text = ast.dump(code.tree)
    return bool(re.search(r"attr='(wait|communicate|terminate|kill|killpg|poll)'", text)) or isinstance(
        code.parents.get(node), ast.withitem
    )


@over_code(
    "persistence.started-later",
    "suspect",
    "product code writes a file that a shell, cron or git starts by itself",
    "only those files, by name",
)
def started_later(code: Code, _setting: Setting) -> Iterator[Finding]:
    for use in uses(code):
        if use.way in ("write", "link") and STARTED_LATER.search(use.path):
            yield Finding(use.path, line=code.line_of(use.node), key="started later")


@over_code(
    "runner.writes-startup",
    "suspect",
    "product code writes a file that the interpreter or the runner loads by itself",
    "only .pth, sitecustomize, usercustomize, conftest, pytest.ini and the loader's preload list",
)
def writes_startup(code: Code, _setting: Setting) -> Iterator[Finding]:
    for use in uses(code):
        if use.way in ("write", "link") and STARTED_WITH_PYTHON.search(use.path):
            yield Finding(use.path, line=code.line_of(use.node), key="startup")


@over_code(
    "persistence.poisoned-cache",
    "suspect",
    "product code writes into caches that tools trust",
    "a cache of one's own, anywhere else, is free",
)
def poisoned_cache(code: Code, _setting: Setting) -> Iterator[Finding]:
    for use in uses(code):
        if use.way in ("write", "link") and (
            CACHE.search(use.path)
            or re.search(r"__pycache__/|\.pyc$|\.cache/(pip|uv)/|(site|dist)-packages/", use.path)
        ):
            yield Finding(use.path, line=code.line_of(use.node), key="cache")


@over_code(
    "persistence.made-byte-code",
    "suspect",
    "product code puts byte code of its own making where the interpreter looks for it",
    "finding a cached file in order to delete it, and compiling files the ordinary way, are free",
)
def made_byte_code(code: Code, _setting: Setting) -> Iterator[Finding]:
    names = {name for _, name in code.calls} | {name for _, name in code.references}
    writes = any(
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("write_bytes", "write") for node in code.nodes
    )
    makes = names & {"marshal.dumps", "marshal.dump", "importlib.util.MAGIC_NUMBER", "importlib.util.source_hash"}
    for node, name in code.calls:
        if name == "importlib.util.cache_from_source" and writes and makes:
            yield Finding(name, line=code.line_of(node), key="byte code")


@over_code(
    "special-case.unchecked-byte-code",
    "suspect",
    "product code makes byte code that is believed without looking at its source",
    "compiling files the ordinary way is free",
)
def unchecked_byte_code(code: Code, _setting: Setting) -> Iterator[Finding]:
    for node, name in code.references:
        if (
            name.endswith("PycInvalidationMode.UNCHECKED_HASH")
            or name == "importlib._bootstrap_external._code_to_hash_pyc"
        ):
            yield Finding(name, line=code.line_of(node), key="unchecked")
