"""How many files of the package a reader has to open to follow one training update, one verdict, one goal, one mined
task: the files in which at least one function is called while it happens, in the process that runs it.

    python benchmarks/walks.py [--src DIR] [--list]

What runs inside sandboxes is not counted. An update is the cycle of the loop from one call of the learner's `update` to
the next: learn, publish, log, collect. `--src` names the `src` of another checkout, to compare with.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

_ROOT = Path(__file__).parents[1]
_CONFIG = """
arm = "rlvr_ttf"
tasks = "worlds:moderate"
episodes = 64
tiny = { layers = 2, width = 32 }
warm = { episodes = 64 }
rl = { groups = 2, group_size = 4 }
eval = { episodes = 4 }
"""
_SCRIPT = {"tool_calls": [{"name": "shell", "arguments": {"command": "echo 'def one(): return 1' > one.py"}}]}
_FINISH = {"tool_calls": [{"name": "finish", "arguments": {"summary": "done", "confidence": 0.9}}]}


class Walk:
    """Collects the package's files whose functions are called, while it is active."""

    def __init__(self, src: Path, between: tuple[str, str] | None = None) -> None:
        self._package = f"{src / 'gametape'}/"
        self._between = between
        self._since: set[str] = set()
        self.files = self._since
        """Of all that was called, or of the last whole stretch between two calls of the function."""

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(self._package):
            return
        name = code.co_filename.removeprefix(self._package)
        if self._between == (name, code.co_name):
            self.files, self._since = self._since, set()
        if code.co_name != "<module>":
            self._since.add(name)


def commands(directory: Path) -> dict[str, tuple[list[str], tuple[str, str] | None]]:
    """The verb of each walk, and the function between two calls of which it lies."""
    (directory / "train.toml").write_text(_CONFIG)
    workspace = directory / "workspace"
    workspace.mkdir()
    (workspace / "test_one.py").write_text("from one import one\n\n\ndef test_one():\n    assert one() == 1\n")
    (workspace / "one.py").write_text("def one(): return 0\n")
    script = directory / "goal.jsonl"
    script.write_text("".join(f"{json.dumps({'text': '', **turn})}\n" for turn in (_SCRIPT, _FINISH)))
    home = ["--home", str(directory / "home")]
    task = _ROOT / "examples" / "tasks" / "double"
    solved = directory / "solved"
    run = [sys.executable, "-m", "gametape.cli.main", "task", "checkout", str(task), "--out", str(solved), "--solved"]
    subprocess.run(run, check=True, capture_output=True)
    return {
        "a training update": (
            ["train", str(directory / "train.toml"), "--out", str(directory / "run"), *home],
            ("train/learner.py", "update"),
        ),
        "a verdict": (["verify", str(task), "--workspace", str(solved), *home], None),
        "a goal": (
            [
                *("goal", "run", "--workspace", str(workspace), "--success", "pytest -q"),
                *("--model", f"scripted:{script}", *home),
            ],
            None,
        ),
        "a mined task": (
            ["mine", str(_ROOT / "examples" / "demo-project"), "--out", str(directory / "mined"), "--limit", "1"],
            None,
        ),
    }


def walk(src: Path, arguments: list[str], between: tuple[str, str] | None) -> set[str]:
    """Run a verb in this process and return the files it called."""
    from gametape.cli.main import main  # noqa: PLC0415 - of the checkout that was asked for

    sys.argv = ["gametape", *arguments]
    looker = Walk(src, between)
    threading.setprofile(looker)
    sys.setprofile(looker)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return looker.files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=_ROOT / "src")
    parser.add_argument("--list", action="store_true", help="the files too")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    src = chosen.src.resolve()
    if chosen.only is None:
        lines = sum(file.read_text().count("\n") for file in src.rglob("*.py"))
        print(f"{'lines of src':20} {lines}")
        for name in ("a training update", "a verdict", "a goal", "a mined task"):
            command = [sys.executable, __file__, "--src", str(src), "--only", name, *(["--list"] * chosen.list)]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(src)})
        return
    sys.path.insert(0, str(src))
    with tempfile.TemporaryDirectory() as scratch:
        arguments, between = commands(Path(scratch))[chosen.only]
        files = walk(src, arguments, between)
    print(f"{chosen.only:20} {len(files)} files", *(sorted(files) if chosen.list else ()), sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
