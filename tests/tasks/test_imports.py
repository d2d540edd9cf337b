"""What the task loader imports."""

import subprocess
import sys

import pytest

LISTED = "import sys, {module}; print(*(name for name in sys.modules if name.startswith('gametape.tasks.mining')))"


@pytest.mark.parametrize("module", ["gametape.tasks.loader", "gametape.tasks.writer", "gametape.tasks.checkout"])
def test_loading_and_writing_a_task_does_not_import_the_miner(module: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LISTED.format(module=module)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []
