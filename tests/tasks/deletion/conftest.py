from pathlib import Path

import pytest

from gametape.core.errors import Lacking

from .made import environment


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of an environment with nothing in it but the runner."""
    try:
        return environment(tmp_path_factory.getbasetemp() / "shelf-home").interpreter
    except Lacking as error:
        pytest.skip(f"no package index: {error}")
