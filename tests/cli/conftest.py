"""What several files of this directory start from."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gametape.core.errors import MissingDependency

from ..tasks.mining.made import environment


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an environment for the small code base is kept."""
    place = tmp_path_factory.getbasetemp() / "shelf-home"
    try:
        environment(place)
    except MissingDependency as error:
        pytest.skip(f"no package index: {error}")
    return place


@pytest.fixture(scope="session")
def task_home(tmp_path_factory: pytest.TempPathFactory, prepared_home: Callable[[Path], Path]) -> Path:
    """For commands that verify tasks and do not ask what is in their home."""
    return prepared_home(tmp_path_factory.getbasetemp() / "home")
