"""Runs every probe as whoever starts it and prints, as JSON, what was wrong with each. See test_ordinary_user.py.

Reads `{"backend": NAME, "probes": ["family/name", ...]}` on standard input.
"""

import json
import os
import sys
import traceback

from gametape.sandbox.backend import open_backend
from tests.sandbox.escape import PROBES
from tests.sandbox.escape.run import attempt, complaints, explain
from tests.sandbox.escape.stage import Stage


def main() -> None:
    question = json.load(sys.stdin)
    wanted = set(question["probes"])
    backend = open_backend(question["backend"])
    state = backend.probe()
    verdicts: dict[str, list[str]] = {}
    if state.available:
        stage = Stage()
        try:
            for probe in PROBES:
                name = f"{probe.family}/{probe.name}"
                if name not in wanted:
                    continue
                try:
                    trial = attempt(probe, stage, backend.start)
                    wrong = complaints(trial, state.capabilities.syscall_events)
                    verdicts[name] = [*wrong, explain(trial)] if wrong else []
                except Exception:  # one broken probe must not hide the others' verdicts
                    verdicts[name] = [traceback.format_exc()]
        finally:
            stage.close()
    report = {"user": os.getuid(), "missing": state.missing, "available": state.available, "verdicts": verdicts}
    print(json.dumps({**report, "capabilities": state.capabilities.model_dump()}))


if __name__ == "__main__":
    main()
