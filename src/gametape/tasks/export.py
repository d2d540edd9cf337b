"""Tasks on their way into another format: what every format needs of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.trouble import shown, unreadable
from gametape.tasks.directory import read_task
from gametape.tasks.writing import PYTHON
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree


@dataclass(frozen=True)
class Exported:
    """A task that was shown to be solvable, under a name that any format and file system takes."""

    directory: Path
    name: str
    subject: Subject
    reference: Tree

    @property
    def statement(self) -> str:
        """All that an agent is told, at once: other formats know no stages."""
        task = self.subject.task
        stages = [f"## Stage {stage.name}\n\n{stage.instruction}" for stage in task.stages]
        return "\n".join([task.instruction, *stages])

    @property
    def image(self) -> str:
        """The image of Python that the task's Dockerfile starts from."""
        file = self.directory / "environment/Dockerfile"
        try:
            text = file.read_text(errors="replace") if file.exists() else ""
        except OSError as error:
            raise unreadable(file, error) from error
        found = re.search(r"^FROM +(\S+)", text, re.MULTILINE)
        return found[1] if found else f"python:{PYTHON}-slim"


def read_all(directories: Iterable[Path]) -> list[Exported]:
    """Read tasks to export. Nothing is built for them. Raises `BadInput` for the first that cannot be exported."""
    found: dict[str, Exported] = {}
    for directory in directories:
        subject = read_task(directory)
        if subject.reference is None:
            raise BadInput(f"{shown(directory)}: has no solution (solution/files), so there is no patch to export")
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", subject.task.name.replace("/", "__")).strip(".-") or "task"
        if name in found:
            other = shown(found[name].directory)
            raise BadInput(f"{shown(directory)}: would be named {name}, as {other} is; export one of the two")
        found[name] = Exported(directory, name, subject, subject.reference)
    return list(found.values())
