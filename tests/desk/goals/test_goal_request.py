"""A workspace is a stranger's: taking up a goal over it runs nothing of it outside of a sandbox."""

import os
import sys
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.desk.goals.goal_request import GoalRequest, create_goal
from gametape.verify.interpreter import installed_pytest_plugins, interpreter_prefixes
from tests.desk.goals.shop import DONE, SUCCESS, lay, script


def _environment(workspace: Path, python: Path | str, sprung: Path) -> Path:
    """A virtual environment with pytest in it, and start-up files that leave a trace."""
    packages = workspace / f".venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (packages / "pytest").mkdir(parents=True)
    (packages / "trap.pth").write_text(f"import pathlib; pathlib.Path({str(sprung)!r}).touch()\n")
    (packages / "sitecustomize.py").write_text(f"import pathlib\npathlib.Path({str(sprung)!r}).touch()\n")
    (packages / "helper-1.0.dist-info").mkdir()
    (packages / "helper-1.0.dist-info/entry_points.txt").write_text("[pytest11]\nhelper = helper\n")
    (workspace / ".venv/bin").mkdir()
    (workspace / ".venv/pyvenv.cfg").write_text(f"home = {workspace / 'evil'}\n")
    (workspace / ".venv/bin/python").symlink_to(python)
    return workspace / ".venv/bin/python"


def test_an_environment_of_the_workspace_is_read_and_not_run(tmp_path: Path) -> None:
    base = os.path.realpath(sys.executable)
    python = _environment(tmp_path / "workspace", base, tmp_path / "sprung")
    assert str(python.parent.parent) in interpreter_prefixes(python)
    assert installed_pytest_plugins(python) == ("helper",)
    assert not (tmp_path / "sprung").exists()


def test_a_python_of_the_workspace_is_not_run(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    fake = tmp_path / "beside" / "python3"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    fake.chmod(0o755)
    _environment(workspace, fake, tmp_path / "sprung")
    with pytest.raises(BadInput, match="--python"):
        create_goal(tmp_path / "home", GoalRequest(workspace, SUCCESS, script(tmp_path / "script.jsonl", [DONE])))
    assert not (tmp_path / "sprung").exists()
