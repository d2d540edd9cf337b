"""Where a code base is run: its tree and its interpreter, from which sandboxes are made."""

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gametape.tasks.project import Project
from gametape.verify.jobs import group_by_file, pytest_options
from gametape.verify.warm_runner import PytestRequest, PytestResult, WarmTestRunner

Item = TypeVar("Item")
ItemResult = TypeVar("ItemResult")


@dataclass(frozen=True)
class ProjectRunner:
    project: Project
    interpreter: Path
    jobs: int = 1
    """How many sandboxes work at a time."""

    def open_surveyor(self) -> WarmTestRunner:
        """A sandbox of its own, with the code base as its author left it."""
        chosen = pytest_options(self.project.tree, self.interpreter)
        return WarmTestRunner(self.project.tree, self.project.import_roots, chosen, self.interpreter)

    def survey(self, steps: Sequence[PytestRequest]) -> list[PytestResult]:
        """What became of every step. They are dealt out to the sandboxes, always in the same way."""
        decks = [range(number, len(steps), self.jobs) for number in range(min(self.jobs, len(steps)))]

        def run(deck: range, surveyor: WarmTestRunner) -> list[tuple[int, PytestResult]]:
            return [(number, surveyor.run(steps[number])) for number in deck]

        found = dict(itertools.chain.from_iterable(self.map_over_sandboxes(decks, run)))
        return [found[number] for number in range(len(steps))]

    def map_over_sandboxes(
        self, items: Iterable[Item], work: Callable[[Item, WarmTestRunner], ItemResult]
    ) -> Iterator[ItemResult]:
        """What work makes of each item, as it is ready. As many threads as there are jobs, each with a sandbox of its
        own for as long as there is work; whatever ends this ends the sandboxes."""
        own = threading.local()
        opened: list[WarmTestRunner] = []

        def one(item: Item) -> ItemResult:
            if not hasattr(own, "surveyor"):
                own.surveyor = self.open_surveyor()
                opened.append(own.surveyor)
            return work(item, own.surveyor)

        with ThreadPoolExecutor(self.jobs) as threads:
            try:
                waiting: set[Future[ItemResult]] = set()
                rest = iter(items)
                while True:
                    waiting |= {threads.submit(one, item) for item in itertools.islice(rest, self.jobs - len(waiting))}
                    if not waiting:
                        return
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
                for surveyor in opened:
                    surveyor.stop()


def surveys_by_file(
    tests: Iterable[str], seconds: Callable[[str], float], shuffle: random.Random | None = None, watch: bool = False
) -> list[PytestRequest]:
    """One step per test file; with `shuffle`, files and tests in another order."""
    files = [*group_by_file(tests).items()]
    if shuffle:
        shuffle.shuffle(files)
    return [
        PytestRequest(
            paths=(file,),
            tests=ids,
            shuffle=shuffle.randrange(1 << 30) if shuffle else None,
            watch=watch,
            seconds=seconds(file),
        )
        for file, ids in files
    ]
