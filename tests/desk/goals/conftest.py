"""What is learned of the small workspace once for all tests."""

import pytest

from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.establishing import establish
from gametape.verify.crew import Crew
from tests.desk.goals.shop import START, SUCCESS


@pytest.fixture(scope="session")
def baseline() -> Baseline:
    return establish(START, SUCCESS, None, strict=False, crew=Crew())
