"""Runs the conformance suite as whoever starts it and prints, as JSON, what went wrong. See test_conformance.py.

Reads a JSON list of `[backend, promise]` pairs on standard input.
"""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from tests.sandbox.conformance import BACKENDS, CASES, Bench


def main() -> None:
    wanted = [tuple(pair) for pair in json.load(sys.stdin)]
    missing = {}
    for name in {name for name, _ in wanted}:
        probe = BACKENDS[name]().probe()
        missing[name] = None if probe.available else "; ".join(probe.missing)
    wrong: dict[str, str] = {}
    for name, case in wanted:
        if missing[name] is None:
            with tempfile.TemporaryDirectory() as place:
                try:
                    CASES[case](Bench(name, Path(place)))
                except Exception:  # one broken promise must not hide the others
                    wrong[f"{name}/{case}"] = traceback.format_exc()
    print(json.dumps({"user": os.getuid(), "missing": missing, "wrong": wrong}))


if __name__ == "__main__":
    main()
