"""`make dist`: the wheel and the sdist are whole, and work in an empty environment without the repository."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
SHIPPED = ("configs", "examples")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both distributions; the wheel is made from the unpacked sdist."""
    place = tmp_path_factory.mktemp("dist")
    clone = place / "clone"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
            (clone / name).chmod((ROOT / name).stat().st_mode)
    build = [sys.executable, "-m", "build", "--outdir", str(place), str(clone)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return place


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing in it but the wheel and what it depends on."""
    place = tmp_path_factory.mktemp("empty") / "venv"
    (wheel,) = dist.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin" / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return place


def source_files() -> set[str]:
    """What the wheel has to hold, by the paths in it."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in tracked.splitlines() if (ROOT / name).is_file()]
    package = {name.removeprefix("src/") for name in names if name.startswith("src/gametape/")}
    return package | {f"gametape/shipped/{name}" for name in names if name.split("/")[0] in SHIPPED}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    assert names == source_files()
    assert "License-Expression: Apache-2.0" in text
    assert "Project-URL" not in text


def test_the_sdist_holds_what_it_is_built_from(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "setup.py", "constraints.txt", "LICENSE", "README.md", "docs/install.md"} <= names
    assert {f"src/{name}" for name in source_files() if not name.startswith("gametape/shipped/")} <= names


def run(installed: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = kept | {"HOME": str(cwd), "GAMETAPE_HOME": str(cwd / "home")}
    command = [str(installed / "bin" / "gametape"), *words]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_verbs_work_from_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "--version").stdout.startswith("gametape ")
    doctor = answer(run(installed, tmp_path, "doctor", "--json"))
    assert (doctor["backends"]["bubblewrap"]["available"], doctor["torch"]) == (True, None)
    assert len(answer(run(installed, tmp_path, "examples", "--json"))["written"]) == 2
    made = answer(run(installed, tmp_path, "task", "new", "mine", "--json"))
    assert answer(run(installed, tmp_path, "task", "check", made["task"], "--runs", "1", "--json"))["admitted"]
    task = "examples/tasks/double"
    assert answer(run(installed, tmp_path, "task", "check", task, "--hacks", "none", "--runs", "1", "--json"))[
        "admitted"
    ]
    solved = answer(
        run(installed, tmp_path, "solve", task, "--model", "scripted:expert", "--out", "runs/first", "--json")
    )
    assert solved["outcome"] == "passed"
    coach = run(installed, tmp_path, "coach", solved["trajectory"], "--task", task, "--model", "smollm2")
    assert (coach.returncode, "[train]'" in coach.stderr) == (3, True)
    goal = ("--workspace", "examples/quickstart/shop", "--success", "pytest -q")
    model = ("--model", "scripted:examples/quickstart/turns.jsonl")
    assert answer(run(installed, tmp_path, "goal", "run", *goal, *model, "--json"))["reached"]
    assert "outcome  passed  reached" in run(installed, tmp_path, "trajectory", "show", "last").stdout
    page = Path(answer(run(installed, tmp_path, "report", "last", "runs/first", "--json"))["written"])
    assert page.read_text().startswith("<!doctype html>")
    assert answer(run(installed, tmp_path, "demo", "--sandbox", "--json"))["held"]


@pytest.mark.parametrize("words", [("train", "configs/rlvr-easy.toml"), ("demo",)])
def test_what_needs_torch_says_so(installed: Path, tmp_path: Path, words: Sequence[str]) -> None:
    run(installed, tmp_path, "examples")
    done = run(installed, tmp_path, *words)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "pip install" in done.stderr
    assert "[train]'" in done.stderr
