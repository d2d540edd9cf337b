"""Draw katas, and write them as task directories."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

from gametape.core.errors import BadInput
from gametape.core.task import Task
from gametape.record.loaded_task import LoadedTask
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
KATAS_PREFIX = "katas:"
"""What a suite of katas that are made on the spot begins with."""
_NAMED_COUNT = 100
_REPEATED = 1000
"""After so many repetitions in a row, the search for another kata ends."""


def kata_stream(seed: int, family: str | None = None) -> Iterator[Kata]:
    """An endless stream of katas in an order that depends on the seed alone. Families and templates take turns. Two
    katas may differ only in their inputs."""
    if family is not None and family not in TEMPLATES_BY_FAMILY:
        raise BadInput(f"there is no family {family!r} of katas; the families are: {', '.join(TEMPLATES_BY_FAMILY)}")
    names = [family] if family else list(TEMPLATES_BY_FAMILY)
    for number in itertools.count():
        rng = Random(f"katas/{seed}/{number}")
        name = names[number % len(names)]
        templates = TEMPLATES_BY_FAMILY[name]
        yield draw_kata(name, templates[number // len(names) % len(templates)](rng), rng)


def make_katas(out: Path, number: int, seed: int, family: str | None = None) -> list[Path]:
    """Write `number` katas, no two asking for the same, below a new directory, atomically."""
    katas = different_katas(number, seed, family)
    directories = []
    with atomic_directory(out):
        for index, kata in enumerate(katas):
            loaded_task = kata.to_loaded_task(f"{seed}-{index:04d}")
            directory = out / f"{index:04d}-{kata.family}"
            directories.append(
                write_task(directory, loaded_task, f"It {kata.template.description}.", ["kata", kata.family])
            )
    return directories


def different_katas(number: int, seed: int, family: str | None) -> list[Kata]:
    """The first `number` katas of the stream, without those that repeat an earlier one."""
    by_request: dict[str, Kata] = {}
    repeated = 0
    for kata in kata_stream(seed, family):
        request = f"{kata.family}: {kata.signature} {kata.template.description}"
        repeated = repeated + 1 if request in by_request else 0
        by_request.setdefault(request, kata)
        if len(by_request) == number:
            break
        if repeated > _REPEATED:
            raise BadInput(
                f"there are no {number} different katas of this kind; take a count of {len(by_request)} or less"
            )
    return list(by_request.values())


def named_katas(name: str, seed: int) -> list[LoadedTask]:
    """The katas of a name, `FAMILY` or `FAMILY:COUNT`, in memory; the family `all` takes all in turn."""
    family, _, count = name.partition(":")
    if family not in (*TEMPLATES_BY_FAMILY, "all") or (count and not (count.isdecimal() and int(count))):
        families = ", ".join(TEMPLATES_BY_FAMILY)
        raise BadInput(f"{KATAS_PREFIX}{name}: give {KATAS_PREFIX}FAMILY or FAMILY:COUNT ({families} or all)")
    katas = different_katas(int(count or _NAMED_COUNT), seed, None if family == "all" else family)
    return [kata.to_loaded_task(f"{seed}-{number:04d}") for number, kata in enumerate(katas)]


def kata_family(task: Task) -> str | None:
    """The kata family of a task; None if it is not a kata."""
    if not task.name.startswith(TASK_NAME_PREFIX):
        return None
    return task.name.removeprefix(TASK_NAME_PREFIX).partition("-")[0]
