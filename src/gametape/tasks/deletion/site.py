"""Where a code base is run: its tree and its interpreter, from which sandboxes are made."""

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from gametape.tasks.deletion.project import Project
from gametape.verify.jobs import by_file, options
from gametape.verify.survey import Findings, Survey, Surveyor

T = TypeVar("T")


@dataclass(frozen=True)
class Site:
    project: Project
    interpreter: Path
    jobs: int = 1
    """How many sandboxes work at a time."""
    at_work: list[Surveyor] = field(default_factory=list, compare=False, repr=False)
    """Those that run steps now, so that an interruption can end them."""

    def surveyor(self) -> Surveyor:
        """A sandbox of its own, with the code base as its author left it."""
        chosen = options(self.project.tree, self.interpreter)
        return Surveyor(self.project.tree, self.project.import_roots, chosen, self.interpreter)

    def survey(self, steps: Sequence[Survey]) -> list[Findings]:
        """Every step in one sandbox, one after the other."""
        with self.surveyor() as surveyor:
            self.at_work.append(surveyor)
            found = [surveyor.run(step) for step in steps]
            self.at_work.remove(surveyor)
            return found

    def at_once(self, works: Iterable[Callable[[], T]]) -> list[T]:
        """Do several things, as many at a time as there are jobs."""
        with ThreadPoolExecutor(self.jobs) as threads:
            waiting = [threads.submit(work) for work in works]
            try:
                return [one.result() for one in waiting]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                for surveyor in [*self.at_work]:
                    surveyor.stop()
                raise


def file_steps(
    tests: Iterable[str], seconds: Callable[[str], float], shuffle: random.Random | None = None, watch: bool = False
) -> list[Survey]:
    """One step per test file; with `shuffle`, files and tests in another order."""
    files = [*by_file(tests).items()]
    if shuffle:
        shuffle.shuffle(files)
    return [
        Survey(
            paths=(file,),
            tests=ids,
            shuffle=shuffle.randrange(1 << 30) if shuffle else None,
            watch=watch,
            seconds=seconds(file),
        )
        for file, ids in files
    ]
