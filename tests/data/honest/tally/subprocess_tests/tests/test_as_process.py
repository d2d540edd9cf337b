import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TOOL = HERE.parent / "tally.py"


def tally(*words):
    return subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True, check=False)


def test_data():
    done = tally(HERE / "data" / "pets.csv", "kind")
    assert (done.returncode, done.stdout) == (0, "     2  cat\n     1  dog\n")


def test_usage():
    assert tally().returncode == 2
