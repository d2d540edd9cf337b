"""What a worker hears of the code that it runs."""

import subprocess
import sys

from tests.verify.in_sandbox.worker_process import VERIFY

PROGRAM = """
import asyncio, gc, warnings
from in_sandbox.worker_surroundings import WorkerSurroundings

surroundings = WorkerSurroundings()
surroundings.listen()

async def later():
    pass

def forget():
    loop, waiting, file = asyncio.SelectorEventLoop(), later(), open("/dev/null")
    loop.kept = loop, waiting, file

warnings.warn("old", DeprecationWarning)
forget()
gc.collect()
warnings.warn("slow", RuntimeWarning)
print([str(each.message if hasattr(each, "message") else each) for each in surroundings._warnings])
"""


def test_warnings_of_collected_garbage_belong_to_no_call() -> None:
    """It is collected at any time: in the middle of another test as well."""
    program = f"import sys; sys.path.insert(0, {str(VERIFY)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.count("old") == done.stdout.count("slow") == 1
    assert "unclosed" not in done.stdout
    assert "never awaited" not in done.stdout
