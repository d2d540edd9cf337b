"""Draw katas, and write them as task directories."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

from gametape.core.errors import BadInput
from gametape.core.task import Task
from gametape.tasks.atomic_directory import atomic_directory
from gametape.tasks.katas import arithmetic, dicts, lists, strings
from gametape.tasks.katas.kata import TASK_NAME_PREFIX, Kata, draw_kata
from gametape.tasks.writer import write_task

TEMPLATES_BY_FAMILY = {
    "arithmetic": arithmetic.TEMPLATES,
    "strings": strings.TEMPLATES,
    "lists": lists.TEMPLATES,
    "dicts": dicts.TEMPLATES,
}
_REPEATED = 1000
"""So many in a row that were there before, and no more are looked for."""


def kata_stream(seed: int, family: str | None = None) -> Iterator[Kata]:
    """Katas without end, in an order that depends on the seed alone; families and forms take turns. Two katas may be
    alike but for their inputs."""
    if family is not None and family not in TEMPLATES_BY_FAMILY:
        raise BadInput(f"there is no family {family!r} of katas; the families are: {', '.join(TEMPLATES_BY_FAMILY)}")
    names = [family] if family else list(TEMPLATES_BY_FAMILY)
    for number in count():
        rng = Random(f"katas/{seed}/{number}")
        name = names[number % len(names)]
        forms = TEMPLATES_BY_FAMILY[name]
        yield draw_kata(name, forms[number // len(names) % len(forms)](rng), rng)


def make_katas(out: Path, number: int, seed: int, family: str | None = None) -> list[Path]:
    """Write so many katas, each asking for something else, below a new directory: all of them or nothing."""
    different = _different(number, seed, family)
    made = []
    with atomic_directory(out):
        for at, kata in enumerate(different):
            subject = kata.to_loaded_task(f"{seed}-{at:04d}")
            directory = out / f"{at:04d}-{kata.family}"
            made.append(write_task(directory, subject, f"It {kata.template.description}.", ["kata", kata.family]))
    return made


def _different(number: int, seed: int, family: str | None) -> list[Kata]:
    """The first so many katas of which none asks for what another does."""
    found: dict[str, Kata] = {}
    repeated = 0
    for kata in kata_stream(seed, family):
        asked = f"{kata.family}: {kata.signature} {kata.template.description}"
        repeated = repeated + 1 if asked in found else 0
        found.setdefault(asked, kata)
        if len(found) == number:
            break
        if repeated > _REPEATED:
            raise BadInput(f"there are no {number} different katas of this kind; give --count {len(found)} or less")
    return list(found.values())


def kata_family(task: Task) -> str | None:
    """Which family of katas a task is of; None if it is no kata."""
    if not task.name.startswith(TASK_NAME_PREFIX):
        return None
    return task.name.removeprefix(TASK_NAME_PREFIX).partition("-")[0]
