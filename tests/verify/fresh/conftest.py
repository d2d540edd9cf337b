"""One judge of a real task for every test of fresh calls."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task
from gametape.verify.fresh.judge import FreshJudge
from gametape.verify.replay.recording import Recording, record_tests, reference_sources
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool

DURATIONS = Path(__file__).parents[3] / "examples" / "tasks" / "durations"


@dataclass(frozen=True)
class Judged:
    """A task, its recording, and a judge for it."""

    loaded_task: LoadedTask
    recording: Recording
    judge: FreshJudge

    @property
    def reference(self) -> SourceTree:
        return reference_sources(self.loaded_task)


@pytest.fixture(scope="session")
def durations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    loaded_task = load_task(DURATIONS)
    with ZygotePool() as zygotes, ReplaySandboxes() as sandboxes:
        recording = record_tests(loaded_task, zygotes, sandboxes, tmp_path_factory.mktemp("home"))
        with FreshJudge([*recording.transcripts.values()], loaded_task, sandboxes, seed=11) as judge:
            yield Judged(loaded_task, recording, judge)
