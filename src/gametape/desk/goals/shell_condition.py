"""Runs a condition of which only the exit code counts, in a fresh sandbox that no agent had access to."""

import shlex
import tempfile
from pathlib import Path

from gametape.agent.task_setup import task_sandbox_spec
from gametape.desk.goals.success_command import ShellCommand
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.result import ExecResult

_SECONDS = 900.0


def run_command(command: ShellCommand, tree: SourceTree, task: LoadedTask) -> ExecResult:
    """Run the command over a tree, with the goal's interpreter first on the PATH and nothing of the workspace on it."""
    policy = task_sandbox_spec(task).policy.with_limits(wall_seconds=_SECONDS)
    with tempfile.TemporaryDirectory(prefix="gametape-goal-") as scratch:
        directory = Path(scratch) / "workspace"
        directory.mkdir()
        tree.write_to(directory)
        sandbox = open_backend("bubblewrap").start(SandboxSpec(policy=policy, workspace=directory))
        try:
            return sandbox.exec(["/bin/sh", "-c", f"cd -- {shlex.quote(command.directory)} && {command.text}"])
        finally:
            sandbox.close()
