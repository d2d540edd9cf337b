"""What holds for every test: nobody's configuration, the same examples in every run, none that is too slow, and what
is learned of a task is learned once."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_EMPTY = tempfile.mkdtemp(prefix="no-config-")
os.environ["XDG_CONFIG_HOME"] = _EMPTY
for _variable in ("GAMETAPE_CONFIG", "GAMETAPE_MODEL"):
    os.environ.pop(_variable, None)

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("gametape", deadline=None, derandomize=True, suppress_health_check=SLOW)
settings.load_profile("gametape")


def pytest_unconfigure() -> None:
    os.rmdir(_EMPTY)


@pytest.fixture(scope="session")
def run_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of this run of the suite, for what is kept under a digest of everything it depends on. Where several
    processes share the test files out among themselves (`scripts/test.py`), it is one for all of them."""
    shared = os.environ.get("GAMETAPE_TESTS_HOME")
    return Path(shared) if shared else tmp_path_factory.mktemp("run-home")


@pytest.fixture(scope="session")
def prepared_home(run_home: Path) -> Callable[[Path], Path]:
    """Makes a home with verdicts of its own in which tasks are prepared once in a run: recordings and floors are
    those of `run_home`."""

    def make(place: Path) -> Path:
        place.mkdir(parents=True, exist_ok=True)
        for name in ("transcripts", "prepared"):
            (run_home / name).mkdir(parents=True, exist_ok=True)
            (place / name).symlink_to(run_home / name)
        return place

    return make


@pytest.fixture
def tasks_prepared_once(tmp_path: Path, prepared_home: Callable[[Path], Path]) -> None:
    """For tests whose home is `tmp_path / "home"`."""
    prepared_home(tmp_path / "home")
