"""Freed blocks leave the process, however small the blocks that stayed between them."""

import subprocess
import sys

import pytest

_PROGRAM = """
from gametape.train.learner import map_large_blocks

def resident():
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))

def block(megabytes):
    return bytearray(b"x") * (megabytes << 20)

if not map_large_blocks():
    raise SystemExit("no such setting")
block(28)  # freed at once: by itself, the C library would now take blocks of up to this size from its heap
start, kept = resident(), []
for _ in range(20):
    passing = block(20)
    kept.append(bytearray(b"x") * (1 << 18))
    large = [block(6) for _ in range(4)]
    kept.append(large.pop())
    del passing, large
print(resident() - start - sum(map(len, kept)) / 2**20)
"""


def test_large_blocks_leave_no_holes_behind():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    if done.stderr == "no such setting\n":
        pytest.skip("this C library has no such setting")
    assert float(done.stdout) < 8, done.stderr
