from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gametape.agent.constraints import Constraints, read_constraints
from gametape.core.errors import BadInput

RULES = Constraints(
    unwritable=["tests", "*.lock", "src/**/gen_*.py", "/workspace/setup.cfg"],
    unreadable=["secrets/**", ".env"],
    commands=[r"^pip install\b", r"\brm -rf /"],
    branches=["main", "release/*"],
    output=[r"AKIA[0-9A-Z]{16}"],
)
KEY = "AKIA" + "A" * 16


@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("write", {"path": "tests/test_a.py", "content": ""}, "tests"),
        ("write", {"path": "/workspace/src/../tests/x", "content": ""}, "tests"),
        ("edit", {"path": "deep/down/poetry.lock"}, "*.lock"),
        ("edit", {"path": "src/a/b/gen_x.py"}, "src/**/gen_*.py"),
        ("edit", {"path": "src/gen_x.py"}, "src/**/gen_*.py"),
        ("write", {"path": "setup.cfg", "content": ""}, "/workspace/setup.cfg"),
        ("read", {"path": "secrets/key"}, "secrets/**"),
        ("search", {"pattern": "x", "path": "a/.env"}, ".env"),
        ("check", {"paths": ["src", "secrets/a.py"]}, "secrets/**"),
        ("write", {"path": "a.py", "content": f"key = '{KEY}'"}, r"AKIA[0-9A-Z]{16}"),
        ("remember", {"name": "k", "text": KEY}, r"AKIA[0-9A-Z]{16}"),
        ("shell", {"command": "cd /tmp && pip  install x"}, r"^pip install\b"),
        ("shell", {"command": "bash -c 'p\"\"ip install x'"}, r"^pip install\b"),
        ("shell", {"command": "cat ./secrets/key"}, "secrets/**"),
        ("shell", {"command": "cat <.env"}, ".env"),
        ("shell", {"command": "tool --file=secrets/key"}, "secrets/**"),
        ("shell", {"command": "echo x > tests/test_a.py"}, "tests"),
        ("shell", {"command": f"echo {KEY}"}, r"AKIA[0-9A-Z]{16}"),
        ("shell", {"command": "sed -i s/a/b/ tests/test_a.py"}, "tests"),
        ("shell", {"command": "rm -rf tests/*"}, "tests"),
        ("shell", {"command": "git checkout HEAD~1 -- tests"}, "tests"),
        ("shell", {"command": "git push origin HEAD:main"}, "main"),
        ("shell", {"command": "git push -f origin +x:refs/heads/release/1"}, "release/*"),
        ("shell", {"command": "git -C . branch -f main HEAD~3"}, "main"),
        ("shell", {"command": "git checkout -B main"}, "main"),
        ("shell", {"command": "git update-ref refs/heads/main abc"}, "main"),
    ],
)
def test_what_is_forbidden_is_seen_before(tool: str, arguments: dict[str, Any], rule: str) -> None:
    found = RULES.call_breach(tool, arguments)
    assert found is not None
    assert found.rule == rule
    assert KEY not in found.evidence


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "tests/test_a.py"}),
        ("write", {"path": "src/tests_of_mine.py", "content": "x"}),
        ("write", {"path": "src/other.py", "content": "secrets"}),
        ("shell", {"command": "pytest tests && git status && git checkout main"}),
        ("shell", {"command": "echo pip install x"}),
        ("shell", {"command": "git push origin feature"}),
        ("shell", {"command": "cat < tests/a.py"}),
        ("finish", {"summary": "done", "confidence": 1}),
    ],
)
def test_what_is_allowed_goes_through(tool: str, arguments: dict[str, Any]) -> None:
    assert RULES.call_breach(tool, arguments) is None


@pytest.mark.parametrize(
    "command", ["git commit -m x", "git merge x", "git rebase x", "git reset --hard x", "git push"]
)
def test_on_a_forbidden_branch_nothing_is_committed(command: str) -> None:
    on_main = RULES.call_breach("shell", {"command": command}, branch="main")
    assert on_main is not None
    assert on_main.kind == "branch"
    assert RULES.call_breach("shell", {"command": command}, branch="mine") is None
    assert RULES.call_breach("shell", {"command": command}, branch="") is None
    assert RULES.call_breach("shell", {"command": f"git switch main && {command}"}, branch="mine") is not None
    assert RULES.call_breach("shell", {"command": f"git checkout -b mine; {command}"}, branch="main") is None
    unknown = RULES.call_breach("shell", {"command": command})
    assert unknown is not None
    assert unknown.evidence.endswith("on a branch that is not known")


def test_what_changed_is_judged_afterwards() -> None:
    found = RULES.path_breaches(["src/a.py", "tests/conftest.py", ".env"])
    assert [(breach.rule, breach.evidence) for breach in found] == [
        ("tests", "writing tests/conftest.py"),
        (".env", "writing .env"),
    ]


def test_no_constraints_forbid_nothing() -> None:
    assert Constraints().call_breach("shell", {"command": "rm -rf / > /dev/null"}) is None
    assert Constraints().describe() == ""


def test_they_are_told_in_words() -> None:
    assert Constraints(branches=["main"]).describe() == (
        "- do not commit to, merge into, push to or move the branches: main"
    )


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="a regular expression"):
        Constraints(output=["("])


def test_they_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('unwritable = ["tests"]\n')
    assert read_constraints(file) == Constraints(unwritable=["tests"])
    for text in ("unwritable = 3", "unknown = []", "[", 'output = ["("]'):
        file.write_text(text)
        with pytest.raises(BadInput, match=r"the constraints in .*rules\.toml"):
            read_constraints(file)
    with pytest.raises(BadInput):
        read_constraints(tmp_path / "none.toml")
