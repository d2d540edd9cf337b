"""Tasks on their way into another format: what every format needs of them."""

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
    """A task that was shown to be solvable, under a name that any format and file system takes."""

    directory: Path
    name: str
    loaded_task: LoadedTask
    reference: SourceTree

    @property
    def statement(self) -> str:
        """All that an agent is told, at once: other formats know no stages."""
        task = self.loaded_task.task
        stages = [f"## Stage {stage.name}\n\n{stage.instruction}" for stage in task.stages]
        return "\n".join([task.instruction, *stages])

    @property
    def image(self) -> str:
        """The image of Python that the task's Dockerfile starts from."""
        file = self.directory / "environment/Dockerfile"
        try:
            text = file.read_text(errors="replace") if file.exists() else ""
        except OSError as error:
            raise read_error(file, error) from error
        found = re.search(r"^FROM +(\S+)", text, re.MULTILINE)
        return found[1] if found else f"python:{IMAGE_PYTHON}-slim"


def read_exportable_tasks(directories: Iterable[Path]) -> list[ExportableTask]:
    """Read tasks to export. Nothing is built for them. Raises `BadInput` for the first that cannot be exported."""
    found: dict[str, ExportableTask] = {}
    for directory in directories:
        subject = read_task(directory)
        if subject.reference is None:
            raise BadInput(
                f"{printable_path(directory)}: has no solution (solution/files), so there is no patch to export"
            )
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", subject.task.name.replace("/", "__")).strip(".-") or "task"
        if name in found:
            other = printable_path(found[name].directory)
            raise BadInput(f"{printable_path(directory)}: would be named {name}, as {other} is; export one of the two")
        found[name] = ExportableTask(directory, name, subject, subject.reference)
    return list(found.values())
