"""Commands of which only the exit code can be known, each in a sandbox of its own that no agent ever had."""

import shlex
import tempfile
from pathlib import Path

from gametape.agent.workshop import sandbox_of
from gametape.desk.goals.command import ShellCommand
from gametape.sandbox.backend import Spec, open_backend
from gametape.sandbox.result import ExecResult
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree

_SECONDS = 900.0


def run_command(command: ShellCommand, tree: Tree, subject: Subject) -> ExecResult:
    """Run it over a tree, with the goal's interpreter first on the path and nothing of the workspace there."""
    policy = sandbox_of(subject).policy.with_limits(wall_seconds=_SECONDS)
    with tempfile.TemporaryDirectory(prefix="gametape-goal-") as scratch:
        directory = Path(scratch) / "workspace"
        directory.mkdir()
        tree.write_to(directory)
        sandbox = open_backend("bubblewrap").start(Spec(policy=policy, workspace=directory))
        try:
            return sandbox.exec(["/bin/sh", "-c", f"cd -- {shlex.quote(command.directory)} && {command.text}"])
        finally:
            sandbox.close()
