"""What holds for every test: nobody's configuration, the same examples in every run, and none that is too slow."""

import os
import tempfile

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
