from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import MissingDependency
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.suite_analysis import SuiteAnalysis, analyze_suite
from gametape.verify.warm_runner import WarmTestRunner

from .made import environment, site_of
from .tricky import TRICKY


@pytest.fixture(scope="session")
def interpreter(run_home: Path) -> Path:
    """That of an environment with nothing in it but the runner."""
    try:
        return environment(run_home).interpreter
    except MissingDependency as error:
        pytest.skip(f"no package index: {error}")


@pytest.fixture(scope="session")
def site(interpreter: Path) -> ProjectRunner:
    return site_of(TRICKY, interpreter)


@pytest.fixture(scope="session")
def learned(site: ProjectRunner) -> SuiteAnalysis:
    return analyze_suite(site, seed=0)


@pytest.fixture(scope="module")
def surveyor(site: ProjectRunner) -> Iterator[WarmTestRunner]:
    with site.open_surveyor() as surveyor:
        yield surveyor
