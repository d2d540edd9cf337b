"""Write a task directory: what `load_task` reads, with the scripts that let Harbor run it too."""

import shlex
from collections.abc import Iterable
from pathlib import Path

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
from gametape.tasks.toml_writer import to_toml
from gametape.verify.git_patch import make_git_patch
from gametape.verify.interpreter import python_version
from gametape.verify.jobs import pytest_options

IMAGE_PYTHON = "3.11"
"""Of images for tasks that name no interpreter."""

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
"""The settings of the tests as the task gave them, whatever the agent made of them."""

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
    """Write a subject as a task directory: a new one, or one that is empty. Loading it gives the same subject.

    Stages are written for Harbor as steps that run the tests of all stages so far. A subject's interpreter is written
    as a hint, with its path on this machine: where it is not there, the pinned dependencies say how to get it again.
    """
    task = loaded_task.task
    _refuse_histories(loaded_task)
    with atomic_directory(directory):
        _write(
            directory / "task.toml", to_toml(to_toml_document(task, description, list(keywords), _hint(loaded_task)))
        )
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


def _refuse_histories(subject: LoadedTask) -> None:
    """What could not be loaded again is not written."""
    for path in (*subject.start, *subject.suite):
        if any(part in VCS_DIRECTORIES for part in path.split("/")):
            raise BadInput(f"{subject.task.name}: {path} is a history, from which the answer could be read")


def _hint(subject: LoadedTask) -> str | None:
    return str(subject.interpreter.absolute()) if subject.interpreter else None


def _dockerfile(subject: LoadedTask) -> str:
    return DOCKERFILE.format(
        python=python_version(subject.interpreter) if subject.interpreter else IMAGE_PYTHON,
        commands="".join(f"RUN {command}\n" for command in image_commands(subject.task)),
    )


def image_commands(task: Task) -> list[str]:
    """What gives an image of Python all that a task needs. It then knows the name and the version of what the sources
    are of, as if that were installed."""
    runner = [] if any(pin.startswith("pytest==") for pin in task.dependencies) else ["pytest"]
    commands = [f"pip install --no-cache-dir {shlex.join([*runner, *task.dependencies])}"]
    if task.origin:
        commands.append(f"python -c {shlex.quote(_naming(task.origin))}")
    return commands


def _naming(origin: Origin) -> str:
    """Python that writes a distribution of a name and a version only."""
    return (
        "import pathlib, sysconfig; root = pathlib.Path(sysconfig.get_path('purelib')); "
        "write = lambda path, text: (path.parent.mkdir(exist_ok=True), path.write_text(text)); "
        f"[write(root / name, text) for name, text in {name_only_metadata(origin)!r}.items()]"
    )


def _write_grader(directory: Path, subject: LoadedTask) -> None:
    """Harbor's: pytest with the options that `gametape verify` gives it."""
    task, chosen = subject.task, pytest_options(subject.start, None)
    ini = {path for path in subject.start if f"/workspace/{path}" in chosen}
    subject.start.only(ini).write_to(directory / "tests/config")
    script = TEST_SCRIPT.format(
        pristine=RESTORE_CONFIG_COMMAND if ini else "",
        roots=shlex.quote(":".join("/app" if root == "." else f"/app/{root}" for root in task.import_roots)),
        options=shlex.join(option.replace("/workspace", "/app") for option in chosen),
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
