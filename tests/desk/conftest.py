"""A database is made ready once; tests begin with a copy of it."""

import shutil
from pathlib import Path

import pytest

from gametape.desk.desk import open_desk


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("prepared")
    with open_desk(home):
        pass
    return home / "desk" / "desk.sqlite"


@pytest.fixture
def home(tmp_path: Path, prepared: Path) -> Path:
    """A home whose database is ready."""
    (tmp_path / "home" / "desk").mkdir(parents=True)
    shutil.copy(prepared, tmp_path / "home" / "desk" / "desk.sqlite")
    return tmp_path / "home"
