"""Restrictions on Python code, for reporting only.

Restricted Python is not a security boundary: there is always another way to a name. So this never decides what a
command can do. It lints the code before it runs, reads the interpreter's audit events while it runs, and adds its
findings to the violations, as `python:...` with action `logged`.
"""

import ast
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gametape.record.directory_walk import walk
from gametape.sandbox.policy import WORKSPACE, PythonRules
from gametape.sandbox.result import PolicyViolation

AUDIT_HOOK_DIRECTORY = "/opt/gametape"
_MOST_TEXT, _LARGEST_FILE, _MOST_HITS = 1 << 20, 1 << 18, 500
_MOST_SECONDS = 1.0  # hostile text can be slow to parse


@dataclass(frozen=True)
class PythonRuleFinding:
    rule: str
    file: str
    line: int
    name: str


def lint(source: str, file: str, rules: PythonRules) -> list[PythonRuleFinding]:
    """The findings in the text of a program. Text that does not parse has none."""
    try:
        tree = ast.parse(source, file)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        PythonRuleFinding(rule, file, getattr(node, "lineno", 0), name)
        for node in ast.walk(tree)
        for rule, name in _broken_rules(node, rules)
    ]


def _broken_rules(node: ast.AST, rules: PythonRules) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = [node.module or ""]
    elif isinstance(node, ast.Call) and _name(node.func) in ("__import__", "import_module") and node.args:
        first = node.args[0]
        modules = [first.value] if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
    else:
        modules = []
    for module in modules:
        if module.split(".")[0] in rules.forbidden_modules:
            yield "import", module
    if isinstance(node, ast.Name | ast.Attribute) and _name(node) in rules.forbidden_calls:
        yield "name", _name(node)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and _is_builtins(node.value) else ""


def _is_builtins(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("builtins", "__builtins__", "importlib")


def lint_command(argv: list[str], workspace: str | None, rules: PythonRules) -> list[PolicyViolation]:
    """Lint the program text on the command line and every Python file of the workspace."""
    findings: list[PythonRuleFinding] = []
    if "-c" in argv[1:-1]:
        findings += lint(argv[argv.index("-c") + 1][:_LARGEST_FILE], "-c", rules)
    began = time.monotonic()
    for path, inside_path in _python_files(workspace) if workspace else ():
        if time.monotonic() - began > _MOST_SECONDS:
            break
        with open(path, encoding="utf-8", errors="replace") as file:
            findings += lint(file.read(_LARGEST_FILE), inside_path, rules)
    return [
        PolicyViolation(
            syscall=f"python:{finding.rule}",
            args=(finding.name, f"{finding.file}:{finding.line}"),
            pid=0,
            command=" ".join(argv),
            time=time.time(),
            action="logged",
        )
        for finding in findings[:_MOST_HITS]
    ]


def _python_files(workspace: str) -> Iterator[tuple[str, str]]:
    total = 0
    for directory, _names, files in walk(workspace):
        for name in sorted(files):
            path = os.path.join(directory, name)
            if not name.endswith(".py") or os.path.islink(path) or not os.path.isfile(path):
                continue
            total += os.path.getsize(path)
            if total > _MOST_TEXT:
                return
            yield path, WORKSPACE + path.removeprefix(workspace)


def audit_hook_files(rules: PythonRules) -> dict[str, str]:
    """The files that interpreters inside load at their start, by path."""
    return {
        f"{AUDIT_HOOK_DIRECTORY}/sitecustomize.py": Path(__file__)
        .with_name("audit_hook.py")
        .read_text(encoding="utf-8"),
        f"{AUDIT_HOOK_DIRECTORY}/rules.json": rules.model_dump_json(),
    }


def parse_audit_events(data: bytes, command: str) -> list[PolicyViolation]:
    """The audit pipe's lines. Hostile code can write there too: malformed lines are ignored."""
    violations = []
    for line in data.split(b"\n")[:_MOST_HITS]:
        try:
            rule, pid, *args = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(rule, str) and isinstance(pid, int) and all(isinstance(arg, str) for arg in args):
            fields = {"syscall": f"python:{rule[:40]}", "args": tuple(args), "pid": pid, "command": command}
            violations.append(PolicyViolation.model_validate({**fields, "time": time.time(), "action": "logged"}))
    return violations
