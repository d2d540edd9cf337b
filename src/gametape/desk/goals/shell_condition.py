"""Runs a condition of which only the exit code counts, in a fresh sandbox that no agent had access to."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gametape.agent.task_setup import task_sandbox_spec
from gametape.desk.goals.success_command import ShellCommand
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.result import ExecResult
from gametape.sandbox.snapshots.cleanup import scratch_directory

MAX_SECONDS = 900.0


@dataclass(frozen=True)
class CommandRun:
    """A run of the command over a tree."""

    result: ExecResult
    rewritten: frozenset[str]
    """Files of the tree that were other ones, or gone, when it had ended."""

    @property
    def exit_code(self) -> int:
        return self.result.exit_code


def run_command(
    command: ShellCommand,
    tree: SourceTree,
    task: LoadedTask,
    trace: Literal["none", "opened", "all"] = "none",
    seconds: float = MAX_SECONDS,
) -> CommandRun:
    """Run the command over a tree, with the goal's interpreter first on the PATH and nothing of the workspace on it.
    With `trace` the files that it opens, or all that it asks for, are noted, which takes up to twice as long."""
    policy = task_sandbox_spec(task).policy.with_limits(wall_seconds=seconds)
    policy = policy.model_copy(update={"trace_files": trace})
    with scratch_directory("gametape-goal-") as scratch:
        directory = scratch / "workspace"
        directory.mkdir()
        tree.write_to(directory)
        sandbox = open_backend("bubblewrap").start(SandboxSpec(policy=policy, workspace=directory))
        try:
            result = sandbox.exec(["/bin/sh", "-c", f"cd -- {shlex.quote(command.directory)} && {command.text}"])
        finally:
            sandbox.close()
        return CommandRun(result, frozenset(path for path in tree if not _is_as_it_was(directory, path, tree)))


def _is_as_it_was(directory: Path, path: str, tree: SourceTree) -> bool:
    """Whether a file still has its content, at its own place: links that the command made are not followed."""
    target = directory / path
    try:
        if os.path.realpath(target) != os.path.join(os.path.realpath(directory), path) or not target.is_file():
            return False
        return target.stat().st_size == len(tree.files[path]) and target.read_bytes() == tree.files[path]
    except OSError:
        return False
