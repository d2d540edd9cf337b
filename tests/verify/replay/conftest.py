"""One recording and one pool of sandboxes for every test of replays."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from gametape.record.loaded_task import LoadedTask
from gametape.verify.replay.attempt import ReplayedTests, replay_attempt
from gametape.verify.replay.recording import Recording, record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool
from tests.verify.replay.shelf_task import shelf_task, sources


@dataclass(frozen=True)
class Recorded:
    """A task with its recording, and what is needed for a replay."""

    loaded_task: LoadedTask
    recording: Recording
    sandboxes: ReplaySandboxes
    zygotes: ZygotePool
    home: Path

    def replay(self, text: str) -> ReplayedTests:
        return replay_attempt(self.recording, self.loaded_task, sources(text), self.sandboxes, self.zygotes, Random(7))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    loaded_task, home = shelf_task(), tmp_path_factory.mktemp("home")
    with ZygotePool(1) as zygotes, ReplaySandboxes() as sandboxes:
        recording = record_tests(loaded_task, zygotes, sandboxes, home)
        yield Recorded(loaded_task, recording, sandboxes, zygotes, home)


@pytest.fixture
def replay(recorded: Recorded) -> Callable[[str], ReplayedTests]:
    return recorded.replay
