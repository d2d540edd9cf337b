"""The key under which a verdict is kept depends on every module that the verifier loads."""

import json
import subprocess
import sys
from pathlib import Path

from gametape.verify.verdict_cache import verdict_sources

LOADED = """
import json, sys
import gametape.verify.verifier
modules = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("gametape.")}
print(json.dumps([path for path in modules.values() if path]))
"""


def test_the_key_hashes_every_module_that_the_verifier_loads() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    hashed = {str(path) for path in verdict_sources()}
    assert {str(Path(path).resolve()) for path in json.loads(loaded)} <= hashed


def test_the_key_hashes_what_runs_in_the_sandbox_and_no_package_above_the_verifier() -> None:
    paths = verdict_sources()
    assert any(path.as_posix().endswith("verify/in_sandbox/pytest_child.py") for path in paths)
    assert not [path for path in paths if {"tasks", "agent", "cli", "train"} & {*path.parts[-3:-1]}]
