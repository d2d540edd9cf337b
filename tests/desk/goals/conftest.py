"""What is learned of the small workspace once for all tests."""

import pytest

from gametape.desk.goals.baseline import GoalBaseline, measure_baseline
from gametape.verify.runner import ZygotePool
from tests.desk.goals.shop import START, SUCCESS


@pytest.fixture(scope="session")
def baseline() -> GoalBaseline:
    return measure_baseline(START, SUCCESS, None, strict=False, zygotes=ZygotePool())
