from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import Lacking
from gametape.tasks.deletion.learned import Learned, learn
from gametape.tasks.deletion.site import Site
from gametape.verify.survey import Surveyor

from .made import environment, site_of
from .tricky import TRICKY


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of an environment with nothing in it but the runner."""
    try:
        return environment(tmp_path_factory.getbasetemp() / "shelf-home").interpreter
    except Lacking as error:
        pytest.skip(f"no package index: {error}")


@pytest.fixture(scope="session")
def site(interpreter: Path) -> Site:
    return site_of(TRICKY, interpreter)


@pytest.fixture(scope="session")
def learned(site: Site) -> Learned:
    return learn(site, seed=0)


@pytest.fixture(scope="module")
def surveyor(site: Site) -> Iterator[Surveyor]:
    with site.surveyor() as surveyor:
        yield surveyor
