"""Read tasks for export: the part that the SWE-bench and verifiers formats share."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import read_task
from gametape.tasks.writer import IMAGE_PYTHON


@dataclass(frozen=True)
class ExportableTask:
    """A task with a reference solution, under a name that every format and file system accepts."""

    directory: Path
    name: str
    loaded_task: LoadedTask
    reference: SourceTree

    @property
    def statement(self) -> str:
        """The instruction followed by those of all stages, because other formats have no stages."""
        task = self.loaded_task.task
        stages = [f"## Stage {stage.name}\n\n{stage.instruction}" for stage in task.stages]
        return "\n".join([task.instruction, *stages])

    @property
    def image(self) -> str:
        """The image that the task's Dockerfile starts from."""
        file = self.directory / "environment/Dockerfile"
        try:
            text = file.read_text(errors="replace") if file.exists() else ""
        except OSError as error:
            raise read_error(file, error) from error
        match = re.search(r"^FROM +(\S+)", text, re.MULTILINE)
        return match[1] if match else f"python:{IMAGE_PYTHON}-slim"


def read_exportable_tasks(directories: Iterable[Path]) -> list[ExportableTask]:
    """Read tasks to export, without building their environments. Raises `BadInput` for the first that cannot be."""
    by_name: dict[str, ExportableTask] = {}
    for directory in directories:
        loaded_task = read_task(directory)
        if loaded_task.reference is None:
            raise BadInput(
                f"{printable_path(directory)}: has no solution (solution/files), so there is no patch to export"
            )
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", loaded_task.task.name.replace("/", "__")).strip(".-") or "task"
        if name in by_name:
            other = printable_path(by_name[name].directory)
            raise BadInput(f"{printable_path(directory)}: would be named {name}, as {other} is; export one of the two")
        by_name[name] = ExportableTask(directory, name, loaded_task, loaded_task.reference)
    return list(by_name.values())
