"""What every test starts from: nobody's configuration."""

import os
import tempfile

_EMPTY = tempfile.mkdtemp(prefix="gametape-no-config-")
os.environ["XDG_CONFIG_HOME"] = _EMPTY
for _variable in ("GAMETAPE_CONFIG", "GAMETAPE_MODEL"):
    os.environ.pop(_variable, None)


def pytest_unconfigure() -> None:
    os.rmdir(_EMPTY)
