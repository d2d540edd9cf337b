"""Language rules report; they never isolate."""

from pathlib import Path

import pytest

from gametape.sandbox import python_rules
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.policy import PythonRules, SandboxPolicy
from gametape.sandbox.result import ExecResult

RULES = PythonRules()


def found(source: str) -> list[tuple[str, str, int]]:
    return [(finding.rule, finding.name, finding.line) for finding in python_rules.lint(source, "x.py", RULES)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("eval('1')", [("name", "eval", 1)]),
        ("x = 1\ne = exec", [("name", "exec", 2)]),
        ("import builtins\nbuiltins.eval('1')", [("name", "eval", 2)]),
        ("import subprocess as s", [("import", "subprocess", 1)]),
        ("from os.path import join", [("import", "os.path", 1)]),
        ("__import__('os')", [("import", "os", 1)]),
        ("import importlib\nimportlib.import_module('socket')", [("import", "socket", 2)]),
        ("def f():\n  import ctypes", [("import", "ctypes", 2)]),
    ],
)
def test_the_lint_finds(source: str, expected: list[tuple[str, str, int]]) -> None:
    assert found(source) == expected


@pytest.mark.parametrize(
    "source", ["import math", "model.eval()", "'eval'", "osmosis = 1", "from . import os", "def broken("]
)
def test_the_lint_leaves_alone(source: str) -> None:
    assert found(source) == []


def run(code: str, workspace: Path, rules: PythonRules = RULES) -> ExecResult:
    return (
        BubblewrapBackend()
        .start(SandboxSpec(policy=SandboxPolicy(language=rules), workspace=workspace))
        .exec(["python3", "-c", code])
    )


def seen(result: ExecResult) -> set[tuple[str, str | int]]:
    return {(violation.syscall, violation.args[0]) for violation in result.violations}


def test_what_the_text_hides_the_audit_hook_hears(tmp_path: Path) -> None:
    code = """
m = 'sub' + 'process'; n = 'ev' + 'al'
__import__(m).run(['true'])
getattr(__builtins__, n)('1+1')
print('went on')
"""
    result = run(code, tmp_path)
    assert result.stdout == "went on\n"
    assert ("python:import", "subprocess") in seen(result)
    assert ("python:call", "exec") in seen(result)
    assert {violation.action for violation in result.violations} == {"logged"}


def test_writes_outside_the_given_directories_are_heard(tmp_path: Path) -> None:
    code = (
        "open('inside', 'w').write('x')\nopen('/tmp/t', 'w').write('x')\ntry: open('/usr/x', 'w')\nexcept OSError: pass"
    )
    assert seen(run(code, tmp_path)) == {("python:write", "/usr/x")}


def test_files_of_the_workspace_are_linted(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("x = 1\nimport subprocess\n")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    violations = run("pass", tmp_path).violations
    assert [(v.syscall, v.args) for v in violations] == [("python:import", ("subprocess", "/workspace/main.py:2"))]


def test_an_ordinary_program_is_not_accused(tmp_path: Path) -> None:
    code = "import json, re, dataclasses, collections, unittest, tempfile\nprint(json.dumps([1]))\ntempfile.mkstemp()"
    result = run(code, tmp_path)
    assert (result.violations, result.exit_code) == ((), 0)


def test_forged_reports_do_no_harm(tmp_path: Path) -> None:
    code = r"""
for line in (b'{', b'[]', b'[1,2]', b'["x","y"]', b'\xff', b'[' * 100000, b'["fake", 1, "arg"]'):
    open(3, 'wb', closefd=False).write(line + b'\n')
"""
    result = run(code, tmp_path)
    assert result.exit_code == 0
    assert ("python:fake", "arg") in seen(result)
