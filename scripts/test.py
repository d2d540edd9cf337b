"""Run the tests on all cores: two pytest processes for each, which share the test files out among themselves.

    python scripts/test.py [--keep DIR] [--times FILE] [--again] [what pytest takes]

Tests wait for others nearly half of the time, hence the two. Each has a directory of its own for temporary files,
because some tests look whether they left any; all have one home for what is learned once of a task. The report of a
process in which something failed is shown whole, and its temporary files are kept. `pytest` alone does the same tests
in one process.

With --again, files in which something failed run once more, by themselves, where they are few. What passes then is
named at the end: a mistake in a test or in the code that shows on a busy machine. It is to be mended, and is no reason
to refuse a change that did not make it.

With --keep, DIR remembers which files passed. A later run leaves them out, until all have passed and DIR is removed.
With --times, files are taken in the order of the times that are noted in FILE, the output of such a run: longest first.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MOST = 8
"""Processes; with more, the longest file would still take as long."""
_MOST_AGAIN = 3
"""Files that run again; where more have failed, the change is the reason."""
_INTERRUPTED = 2
"""What pytest exits with when somebody ended it, or when a test file cannot be read."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--times", type=Path)
    parser.add_argument("--again", action="store_true")
    chosen, words = parser.parse_known_args(words)
    keep, times = (path and path.absolute() for path in (chosen.keep, chosen.times))
    return run(words, keep, times, chosen.again)


def run(words: list[str], keep: Path | None, times: Path | None, again: bool) -> int:
    began = time.monotonic()
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        if passed := len(os.listdir(keep)):
            print(f"{passed} files passed in an earlier run and are left out; to begin anew: rm -r {keep}", flush=True)
    place = Path(tempfile.mkdtemp(prefix="gametape-suite-"))
    place.chmod(0o755)  # some tests become another user
    for name in ("taken", "failed", "home"):
        (place / name).mkdir()
    parts: list[subprocess.Popen[bytes]] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: [part.send_signal(signal.SIGINT) for part in parts])
    rooms = [place / str(number) for number in range(min(2 * len(os.sched_getaffinity(0)), _MOST))]
    for room in rooms:
        parts.append(_start(room, place, keep, times, words))
    codes = [part.wait() for part in parts]
    _show(rooms, codes)
    print(f"{len(parts)} processes, {time.monotonic() - began:.0f} s")
    failed = sorted(os.listdir(place / "failed"))
    if again and 1 in codes and {*codes} <= {0, 1} and 0 < len(failed) <= _MOST_AGAIN:
        names = ", ".join(name.replace(":", "/") for name in failed)
        print(f"once more, with nothing beside it: {names}", flush=True)
        for name in failed:
            (place / "taken" / name).unlink()
        parts[:] = [_start(place / "again", place, keep, times, words)]
        codes = [parts[0].wait()]
        _show([place / "again"], codes)
        if not codes[0]:
            print(f"FLAKY, failed beside other tests and passed alone: {names}")
    if {*codes} <= {0, _INTERRUPTED}:
        shutil.rmtree(place, ignore_errors=True)
    else:
        print(f"temporary files are kept in {place}")
    if keep and not any(codes):
        shutil.rmtree(keep)
    return 1 if any(codes) else 0


def _show(rooms: list[Path], codes: list[int]) -> None:
    """The whole report of a process in which something failed, the last line of the others."""
    for room, code in zip(rooms, codes, strict=True):
        said = (room / "log").read_text(errors="replace")
        print(f"\n{said.rstrip() if code else said.rstrip().rpartition(chr(10))[2]}", flush=True)


def _start(
    room: Path, place: Path, keep: Path | None, times: Path | None, words: list[str]
) -> "subprocess.Popen[bytes]":
    """In a process group of its own, so that what is typed at the terminal does not reach it twice."""
    (room / "tmp").mkdir(parents=True)
    options = ["-p", "tests.sharing", "-p", "no:cacheprovider", "-o", "console_output_style=classic", *words]
    with (room / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            env={
                "OMP_NUM_THREADS": "1",
                **os.environ,
                "TMPDIR": str(room / "tmp"),
                "GAMETAPE_TESTS_HOME": str(place / "home"),
                "GAMETAPE_TESTS_STARTER": str(os.getpid()),
                "GAMETAPE_TESTS_TAKEN": str(place / "taken"),
                "GAMETAPE_TESTS_FAILED": str(place / "failed"),
                "GAMETAPE_TESTS_PASSED": str(keep or ""),
                "GAMETAPE_TESTS_TIMES": str(times or ""),
            },
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            process_group=0,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
