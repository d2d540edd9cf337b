"""A run that is killed leaves no process behind: none that samples, verifies or ranks, and no sandbox."""

from pathlib import Path

import pytest

from tests.patience import family_of, living, wait_until
from tests.train.test_async_kills import begin_run, kill, start
from tests.train.test_async_kills import model as model  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("ranks", [1, 2])
def test_no_process_outlives_a_killed_run(tmp_path: Path, model: Path, ranks: int) -> None:
    """Killed while it plays: a second process samples, verifiers prepare tasks, sandboxes are open."""
    root = begin_run(tmp_path, model, 200)
    config = root / "config.toml"
    config.write_text(config.read_text().replace("ranks = 1\n", f"ranks = {ranks}\n"))
    run = start(root, tmp_path / "home")
    wait_until((root / "metrics.jsonl").exists, "the beginning")
    wait_until(lambda: len(family_of(run.pid)) > 5 + ranks, "processes that sample and verify")
    family = family_of(run.pid)
    kill(run)
    wait_until(lambda: not living(family), "the end of all processes")
