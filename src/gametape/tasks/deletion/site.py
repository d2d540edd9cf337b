"""Where a code base is run: its tree and its interpreter, from which sandboxes are made."""

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gametape.tasks.deletion.project import Project
from gametape.verify.jobs import by_file, options
from gametape.verify.survey import Findings, Survey, Surveyor

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Site:
    project: Project
    interpreter: Path
    jobs: int = 1
    """How many sandboxes work at a time."""

    def surveyor(self) -> Surveyor:
        """A sandbox of its own, with the code base as its author left it."""
        chosen = options(self.project.tree, self.interpreter)
        return Surveyor(self.project.tree, self.project.import_roots, chosen, self.interpreter)

    def survey(self, steps: Sequence[Survey]) -> list[Findings]:
        """What became of every step. They are dealt out to the sandboxes, always in the same way."""
        decks = [range(number, len(steps), self.jobs) for number in range(min(self.jobs, len(steps)))]

        def run(deck: range, surveyor: Surveyor) -> list[tuple[int, Findings]]:
            return [(number, surveyor.run(steps[number])) for number in deck]

        found = dict(itertools.chain.from_iterable(self.spread(decks, run)))
        return [found[number] for number in range(len(steps))]

    def spread(self, items: Iterable[Item], work: Callable[[Item, Surveyor], Found]) -> Iterator[Found]:
        """What work makes of each item, as it is ready. As many threads as there are jobs, each with a sandbox of its
        own for as long as there is work; whatever ends this ends the sandboxes."""
        own = threading.local()
        opened: list[Surveyor] = []

        def one(item: Item) -> Found:
            if not hasattr(own, "surveyor"):
                own.surveyor = self.surveyor()
                opened.append(own.surveyor)
            return work(item, own.surveyor)

        with ThreadPoolExecutor(self.jobs) as threads:
            try:
                waiting: set[Future[Found]] = set()
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
