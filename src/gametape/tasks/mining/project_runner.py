"""Run the tests of a project in several sandboxes at a time."""

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
    """How many sandboxes run at a time."""

    def open_surveyor(self) -> WarmTestRunner:
        """A new warm test runner over the author's tree."""
        options = pytest_options(self.project.tree, self.interpreter)
        return WarmTestRunner(self.project.tree, self.project.import_roots, options, self.interpreter)

    def survey(self, requests: Sequence[PytestRequest]) -> list[PytestResult]:
        """The results of these requests, in order. The requests are always distributed over the sandboxes alike."""
        decks = [range(number, len(requests), self.jobs) for number in range(min(self.jobs, len(requests)))]

        def run(deck: range, test_runner: WarmTestRunner) -> list[tuple[int, PytestResult]]:
            return [(number, test_runner.run(requests[number])) for number in deck]

        results = dict(itertools.chain.from_iterable(self.map_over_sandboxes(decks, run)))
        return [results[number] for number in range(len(requests))]

    def map_over_sandboxes(
        self, items: Iterable[Item], work: Callable[[Item, WarmTestRunner], ItemResult]
    ) -> Iterator[ItemResult]:
        """Yield the result of `work` for each item when it is ready.

        There are as many threads as jobs, each with its own sandbox; all sandboxes are stopped at the end."""
        thread_local = threading.local()
        opened: list[WarmTestRunner] = []

        def run_one(item: Item) -> ItemResult:
            if not hasattr(thread_local, "surveyor"):
                thread_local.surveyor = self.open_surveyor()
                opened.append(thread_local.surveyor)
            return work(item, thread_local.surveyor)

        with ThreadPoolExecutor(self.jobs) as threads:
            try:
                waiting: set[Future[ItemResult]] = set()
                rest = iter(items)
                while True:
                    waiting |= {
                        threads.submit(run_one, item) for item in itertools.islice(rest, self.jobs - len(waiting))
                    }
                    if not waiting:
                        return
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
                for test_runner in opened:
                    test_runner.stop()


def surveys_by_file(
    tests: Iterable[str], seconds: Callable[[str], float], shuffle: random.Random | None = None, watch: bool = False
) -> list[PytestRequest]:
    """One request per test file; with `shuffle`, files and tests in another order."""
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
