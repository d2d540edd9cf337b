"""`gametape train` as a process: what is refused leaves nothing, and a run that goes on says what happened."""

import json
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from .command import run as run_plainly
from .command import run_with_torch as run

SMALL = """
arm = "rlvr"
tasks = "worlds:easy"
episodes = 8
[tiny]
layers = 1
width = 16
heads = 2
window = 256
[warm]
episodes = 2
batch = 2
[rl]
groups = 2
group_size = 2
resample = 1.0
turns = 2
turn_tokens = 2
[eval]
episodes = 2
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("model=nowhere", "model: nowhere: no such directory"),
        ("tasks=worlds:none", "no such worlds"),
        ("tasks=nowhere", "nowhere"),
        ("algorithm.x=1", "algorithm.x: there is no such setting (Rlvr has none)"),
        ("arm=no.module:Class", "the module must be importable"),
        ("rl.lenght=1", "did you mean rl.normalizer_tokens?"),
        ("cluster.samplers=0", "--set: cluster.samplers: "),
        ("cluster.heartbeat_seconds=0.5", "--set: cluster.heartbeat_seconds: "),
        ("cluster.workers=2", "cluster.workers: there is no such setting"),
    ],
)
def test_a_refused_run_leaves_nothing_and_says_one_line(config: Path, change: str, says: str, tmp_path: Path) -> None:
    ran = run("train", config, "--out", tmp_path / "runs" / "x", "--set", change, cwd=tmp_path)
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give --model M and --tasks T, or a configuration file, or --resume RUN"),
        (("--model", "smollm2"), "give --tasks T"),
        (("--tasks", "katas:lists"), "give --model M too"),
        (("--model", "nowhere", "--tasks", "katas:lists"), "model: nowhere: no such directory"),
        (("--tasks", "worlds:easy", "--arm", "hope"), "--arm: arm: expected 'sft'"),
        (("--tasks", "worlds:none"), "no such worlds"),
        (("--tasks", "worlds:easy", "--set", "context.tokns=1"), "did you mean context.tokens?"),
        (("--model", "tiny", "--tasks", "katas:lists"), "a tiny policy knows the words of worlds only"),
        (("--resume", "nowhere", "--arm", "rlvr"), "give no CONFIG, --out, --arm with it"),
        (("--resume", "nowhere"), "there is no run here to resume"),
    ],
)
def test_bad_options_are_refused_in_one_line(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    ran = run_plainly("train", *words, cwd=tmp_path)
    assert ran.code == 2, ran.err
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_does_not_wait_for_torch(tmp_path: Path) -> None:
    words = ["train", "--model", str(tmp_path), "--tasks", "katas:lists"]
    script = f"import sys, gametape.cli.main as main\nsys.argv[1:] = {words!r}\ntry: main.main()\n"
    script += "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "2 False", done.stderr


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_it_says_how_to_get_it(config: Path, tmp_path: Path) -> None:
    ran = run_plainly("train", config, "--out", tmp_path / "x", "--ray", "local", cwd=tmp_path)
    assert ran.code == 3
    assert ran.err.startswith("gametape: --ray needs Ray: ")
    assert "pip install" in ran.err
    assert "[scale]" in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


def test_a_run_needs_no_file(tmp_path: Path) -> None:
    """Options count more than the file's values and less than --set; the run's name comes from arm and tasks."""
    small = {"tiny.layers": 1, "tiny.width": 16, "tiny.heads": 2, "warm.episodes": 2, "warm.batch": 2}
    small |= {"episodes": 4, "rl.groups": 1, "rl.group_size": 2, "rl.turns": 2, "eval.episodes": 1, "eval.every": 0}
    settings = [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
    ran = run("train", "--tasks", "worlds:easy", "--arm", "rejection", *settings, "--set", "arm=rlvr", cwd=tmp_path)
    assert ran.code == 0, ran.err
    written = tomllib.loads((tmp_path / "runs/rlvr-worlds-easy/config.toml").read_text())
    assert (written["arm"], written["model"], written["tasks"]) == ("rlvr", "tiny", "worlds:easy")
    assert written["rl"]["turn_tokens"] == 16, "a default of a tiny policy"


def test_tasks_in_shared_mode_are_taken_only_when_asked_for(config: Path, tmp_path: Path) -> None:
    tasks = Path(__file__).parents[2] / "examples/tasks"
    for name in ("greet", "cache-bug"):
        shutil.copytree(tasks / name, tmp_path / "tasks" / name)
    toml = tmp_path / "tasks/cache-bug/task.toml"
    toml.write_text(toml.read_text().replace('mode = "replay"', 'mode = "shared"'))
    words = ("train", config, "--out", tmp_path / "x", "--set", f"tasks={tmp_path / 'tasks'}", "--home", tmp_path / "h")
    refused = run(*words, cwd=tmp_path)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "1 task in shared mode, where a verdict can be forged: gametape/cache-bug" in refused.err
    assert "--allow-shared" in refused.err
    asked = run(*words, "--allow-shared", cwd=tmp_path)
    assert "shared mode" not in asked.err
    assert "a tiny policy knows the words of worlds only" in asked.err, "it went on to the next question"


def test_a_run_says_what_it_did_and_goes_on_longer(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "x"
    first = run("train", config, "--out", out, cwd=tmp_path)
    assert first.code == 0, first.err
    assert "rlvr: 8 episodes, 0 updates (no group had both a success and a failure)" in first.out
    assert "what to do: take easier tasks, larger groups (rl.group_size), or hints (arm rlvr_ttf)" in first.out
    assert f"run: {out}" in first.out
    assert first.err.splitlines()[:2] == [
        f"run: {out}",
        "warm start: 1 update, loss " + first.err.split("loss ")[1][:5],
    ]
    assert "no update: nothing to learn from" in first.err
    assert run("train", config, "--out", out, cwd=tmp_path).err == (
        f"gametape: {out}: there is a run here already; give --resume {out}, or another --out\n"
    )
    refused = run("train", "--resume", out, "--set", "rl.group_size=4", cwd=tmp_path)
    assert refused.code == 2
    assert "a run that goes on may change: episodes, flops, allow_shared, eval.every" in refused.err
    assert refused.err.count("\n") == 1
    longer = run("train", "--resume", out, "--set", "episodes=16", "--json", cwd=tmp_path)
    assert longer.code == 0, longer.err
    assert len(longer.out.splitlines()) == 1
    assert (longer.answer["episodes"], longer.answer["steps"], longer.answer["updates"]) == (16, 4, 0)
    assert longer.answer["groups"] == {"all_fail": 8}
    assert "changed: episodes from 8 to 16" in longer.err
    assert "resumed after 2 batches, 8 of 16 episodes" in longer.err
    history = [json.loads(line) for line in (out / "config-history.jsonl").read_text().splitlines()]
    assert history == [{"step": 2, "episodes": 8, "changes": {"episodes": {"before": 8, "after": 16}}}]
    assert "episodes = 16" in (out / "config.toml").read_text()
