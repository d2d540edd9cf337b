from collections.abc import Iterator

import pytest

from tests.sandbox.snapshots.rig import SETTINGS, Rig


@pytest.fixture(params=SETTINGS, ids=str)
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with Rig(request.param) as started:
        yield started
