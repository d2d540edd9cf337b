"""Write a task directory that `load_task` reads, with the scripts that Harbor runs."""

import shlex
from collections.abc import Iterable
from pathlib import Path

import tomli_w

from gametape.core.errors import BadInput
from gametape.core.task import Origin, Task
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.atomic_directory import atomic_directory
from gametape.tasks.dependency_env.distributions import name_only_metadata
from gametape.tasks.layout import (
    CACHE_DIRECTORIES,
    DELETED_FILE,
    SOLUTION_DIRECTORY,
    SUITE_DIRECTORY,
    VCS_DIRECTORIES,
    WORKSPACE_DIRECTORY,
)
from gametape.tasks.task_toml import to_toml_document
from gametape.verify.git_patch import make_git_patch
from gametape.verify.interpreter import python_version
from gametape.verify.jobs import pytest_options

IMAGE_PYTHON = "3.11"
"""The Python of images for tasks without an interpreter."""

DOCKERFILE = """\
FROM python:{python}-slim
{commands}COPY workspace /app
WORKDIR /app
"""

TEST_SCRIPT = """\
#!/bin/sh
# The weak grader: it believes a test process that the agent's code runs in. `gametape verify` is the strong one.
mkdir -p /logs/verifier
cd /app && cp -R /tests/suite/. .{pristine} &&
    PYTHONPATH={roots} python -B -m pytest {options} @/tests/ids.txt
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""

RESTORE_CONFIG_COMMAND = " && cp -R /tests/config/. ."
"""Restores pytest's settings as the task gives them, because the agent may have changed them."""

SOLVE_SCRIPT = """\
#!/bin/sh
# Apply the reference: its files go over the workspace, and what it removes goes away.
set -e
cd /app
if [ -d /solution/files ]; then cp -R /solution/files/. .; fi
if [ -f /solution/deleted.txt ]; then
    while IFS= read -r path; do rm -f -- "$path"; done < /solution/deleted.txt
fi
"""


def write_task(directory: Path, loaded_task: LoadedTask, description: str = "", keywords: Iterable[str] = ()) -> Path:
    """Write a task into a new or empty directory. Loading it gives an equal `LoadedTask`.

    Stages are written for Harbor as steps that run the tests of all stages so far. The interpreter is written as a
    hint, with its path on this machine; on another machine it is built again from the pinned dependencies.
    """
    task = loaded_task.task
    _refuse_histories(loaded_task)
    with atomic_directory(directory):
        document = to_toml_document(task, description, list(keywords), _hint(loaded_task))
        _write(directory / "task.toml", tomli_w.dumps(document))
        _write(directory / "instruction.md", task.instruction)
        loaded_task.start.write_to(directory / WORKSPACE_DIRECTORY)
        loaded_task.suite.write_to(directory / SUITE_DIRECTORY)
        _write(directory / "environment/Dockerfile", _dockerfile(loaded_task))
        _write(directory / "environment/.dockerignore", "".join(f"**/{name}\n" for name in CACHE_DIRECTORIES))
        _write_grader(directory, loaded_task)
        if loaded_task.reference is not None:
            _write_solution(directory, loaded_task.start, loaded_task.reference)
        _write_stages(directory, task)
    return directory


def _refuse_histories(loaded_task: LoadedTask) -> None:
    """Refuse version-control files: a task that contains them could not be loaded."""
    for path in (*loaded_task.start, *loaded_task.suite):
        if any(part in VCS_DIRECTORIES for part in path.split("/")):
            raise BadInput(f"{loaded_task.task.name}: {path} is a history, from which the answer could be read")


def _hint(loaded_task: LoadedTask) -> str | None:
    return str(loaded_task.interpreter.absolute()) if loaded_task.interpreter else None


def _dockerfile(loaded_task: LoadedTask) -> str:
    return DOCKERFILE.format(
        python=python_version(loaded_task.interpreter) if loaded_task.interpreter else IMAGE_PYTHON,
        commands="".join(f"RUN {command}\n" for command in image_commands(loaded_task.task)),
    )


def image_commands(task: Task) -> list[str]:
    """Shell commands that install a task's dependencies in a Python image, and the metadata (name and version only)
    of the distribution that its sources come from."""
    runner = [] if any(pin.startswith("pytest==") for pin in task.dependencies) else ["pytest"]
    commands = [f"pip install --no-cache-dir {shlex.join([*runner, *task.dependencies])}"]
    if task.origin:
        commands.append(f"python -c {shlex.quote(_naming(task.origin))}")
    return commands


def _naming(origin: Origin) -> str:
    """Python code that writes the metadata of a distribution, without its modules."""
    return (
        "import pathlib, sysconfig; root = pathlib.Path(sysconfig.get_path('purelib')); "
        "write = lambda path, text: (path.parent.mkdir(exist_ok=True), path.write_text(text)); "
        f"[write(root / name, text) for name, text in {name_only_metadata(origin)!r}.items()]"
    )


def _write_grader(directory: Path, loaded_task: LoadedTask) -> None:
    """Harbor's grader: pytest with the options that `gametape verify` gives it."""
    task, options = loaded_task.task, pytest_options(loaded_task.start, None)
    ini = {path for path in loaded_task.start if f"/workspace/{path}" in options}
    loaded_task.start.only(ini).write_to(directory / "tests/config")
    script = TEST_SCRIPT.format(
        pristine=RESTORE_CONFIG_COMMAND if ini else "",
        roots=shlex.quote(":".join("/app" if root == "." else f"/app/{root}" for root in task.import_roots)),
        options=shlex.join(option.replace("/workspace", "/app") for option in options),
    )
    _write(directory / "tests/test.sh", script, executable=True)
    _write(directory / "tests/ids.txt", _lines(task.tests.every))


def _write_solution(directory: Path, start: SourceTree, reference: SourceTree) -> None:
    changed = {path for path in reference if _as_is(reference, path) != _as_is(start, path)}
    removed = sorted(set(start) - set(reference))
    if not changed and not removed:
        raise BadInput(f"{directory}: not written, for the reference changes nothing")
    if odd := [path for path in removed if "\n" in path]:
        raise BadInput(f"{directory}: cannot list the removed file {odd[0]!a}, for its name has two lines")
    reference.only(changed).write_to(directory / SOLUTION_DIRECTORY)
    if removed:
        _write(directory / DELETED_FILE, _lines(removed))
    _write(directory / "solution/solve.sh", SOLVE_SCRIPT, executable=True)
    _write(directory / "solution/reference.patch", make_git_patch(start, reference))


def _as_is(tree: SourceTree, path: str) -> tuple[bytes | None, bool]:
    return tree.files.get(path), path in tree.executable


def _write_stages(directory: Path, task: Task) -> None:
    so_far: dict[str, None] = {}
    for stage in task.stages:
        so_far.update(dict.fromkeys(stage.tests.every))
        _write(directory / "steps" / stage.name / "instruction.md", stage.instruction)
        _write(directory / "steps" / stage.name / "tests/ids.txt", _lines(so_far))


def _lines(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def _write(path: Path, text: str, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(0o755 if executable else 0o644)
