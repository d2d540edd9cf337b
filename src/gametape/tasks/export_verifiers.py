"""Export tasks as a Python package for the `verifiers` library: a task set whose reward is `gametape verify`.

It is written for `verifiers.v1`, where a `Taskset` yields typed `Task`s; earlier releases, with `load_environment`,
cannot load it. The package contains copies of the tasks, so that it can be installed on another machine.
"""

import json
import keyword
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.record.source_tree import SourceTree, read_tree
from gametape.tasks.atomic_directory import atomic_directory
from gametape.tasks.export import ExportableTask
from gametape.tasks.layout import is_cache_file
from gametape.tasks.writer import image_commands

PYPROJECT_TEMPLATE = """\
[project]
name = "{name}"
version = "0.1.0"
description = "Coding tasks with the verdicts of gametape."
requires-python = ">=3.11.4"
dependencies = ["verifiers>=0.4"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build]
ignore-vcs = true

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""

README_TEMPLATE = """\
# {name}

{count} for the `verifiers` library, exported by gametape. The agent works in a container, in /app. Then its files are
brought here and `gametape verify` decides; that command has to be on the PATH, from any environment.

The package holds held-out tests and solutions. It belongs to whoever grades, never into the agent's container.
"""

INIT_TEMPLATE = """\
from {package}.taskset import GametapeTaskset

__all__ = ["GametapeTaskset"]
"""

TASKSET_TEMPLATE = '''\
"""Coding tasks whose reward is the verdict of `gametape verify`."""

import asyncio
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

HERE = Path(__file__).parent
MOST_BYTES = 256 << 20


class GametapeData(vf.TaskData):
    path: str
    """The task directory, relative to this file."""
    commands: list[str]
    """What gives the image all that the task needs."""


class GametapeTask(vf.Task[GametapeData]):
    NEEDS_CONTAINER = True  # on this machine lie the held-out tests

    async def setup(self, runtime: vf.Runtime) -> None:
        """Lay out the starting tree in /app, and nothing else of the task."""
        await runtime.write("/tmp/start.tar", packed(HERE / self.data.path / "environment/workspace"))
        unpack = "mkdir -p /app && tar --no-same-owner -xf /tmp/start.tar -C /app && rm /tmp/start.tar"
        for command in [*self.data.commands, unpack]:
            done = await runtime.run(["sh", "-c", command], {})
            if done.exit_code:
                raise RuntimeError(f"the task could not be set up: {done.stderr.strip()[-500:]}")

    @vf.reward(weight=1.0)
    async def verified(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        """What gametape makes of /app. Nothing that runs in the container has a say in it."""
        await runtime.run(["tar", "--hard-dereference", "-C", "/app", "-cf", "/tmp/attempt.tar", "."], {})
        attempt = await runtime.read("/tmp/attempt.tar", max_bytes=MOST_BYTES)
        verdict = await asyncio.to_thread(verdict_on, HERE / self.data.path, attempt)
        trace.record_metric("passed", float(verdict["passed"]))
        return float(verdict["reward"])


class GametapeTaskset(vf.Taskset[GametapeTask, vf.TasksetConfig]):
    def load(self) -> Iterator[GametapeTask]:
        with (HERE / "tasks.jsonl").open(encoding="utf-8") as rows:
            for row in rows:
                yield GametapeTask(GametapeData(**json.loads(row)), self.config.task)


def packed(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(directory, arcname=".")
    return buffer.getvalue()


def verdict_on(task: Path, attempt: bytes) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        unpack(attempt, Path(place))
        command = ["gametape", "verify", str(task), "--workspace", place, "--profile", "train", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"gametape could not decide: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def unpack(attempt: bytes, place: Path) -> None:
    """The archive comes from the agent's container: only files and directories below `place` are taken from it, and
    what cannot be read of it counts as not there."""
    try:
        with tarfile.open(fileobj=io.BytesIO(attempt), mode="r:") as archive:
            for member in archive:
                if member.isreg() or member.isdir():
                    archive.extract(member, place, filter="data")
    except (tarfile.TarError, OSError, ValueError):
        return
'''


def export_verifiers(tasks: Iterable[ExportableTask], out: Path) -> Path:
    """Write a package into a new directory, atomically. The directory's name becomes the package's."""
    name, package = _names(out)
    tasks = list(tasks)
    copies = {exported.name: _copied(exported.directory) for exported in tasks}
    count = f"{len(tasks)} coding task{'' if len(tasks) == 1 else 's'}"
    texts = {
        "pyproject.toml": PYPROJECT_TEMPLATE.format(name=name, package=package),
        "README.md": README_TEMPLATE.format(name=name, count=count),
        f"{package}/__init__.py": INIT_TEMPLATE.format(package=package),
        f"{package}/taskset.py": TASKSET_TEMPLATE,
        f"{package}/tasks.jsonl": "".join(f"{json.dumps(verifiers_row(exported))}\n" for exported in tasks),
    }
    with atomic_directory(out):
        SourceTree({path: text.encode() for path, text in texts.items()}).write_to(out)
        for task, tree in copies.items():
            tree.write_to(out / package / "tasks" / task)
    return out


def verifiers_row(exported: ExportableTask) -> dict[str, Any]:
    """One task as the library's `TaskData`. Limits that the task does not set are not set here."""
    task, limits = exported.loaded_task.task, exported.loaded_task.task.limits
    resources = {
        "cpu": limits.cpus,
        "memory": limits.memory_mb and limits.memory_mb / 1024,
        "disk": limits.disk_mb and limits.disk_mb / 1024,
    }
    return {
        "id": exported.name,
        "name": task.name,
        "prompt": exported.statement,
        "image": exported.image,
        "workdir": "/app",
        "timeout": {"agent": limits.agent_seconds},
        "resources": resources,
        "path": f"tasks/{exported.name}",
        "commands": image_commands(task),
    }


def _names(out: Path) -> tuple[str, str]:
    """The names of the distribution and of the package, from the directory's."""
    project = out.absolute().name.replace("_", "-").lower()
    package = project.replace("-", "_")
    taken = {"gametape", "verifiers", *sys.stdlib_module_names}
    if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", package) or keyword.iskeyword(package) or package in taken:
        raise BadInput(
            f"{printable_path(out)}: its last part becomes the name of a Python package and cannot be one; "
            "take letters, digits and hyphens, and no module's name"
        )
    return project, package


def _copied(directory: Path) -> SourceTree:
    try:
        whole = read_tree(directory)
    except OSError as error:
        raise read_error(Path(error.filename or directory), error) from error
    return whole.without({path for path in whole if is_cache_file(path)})
