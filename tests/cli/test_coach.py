"""`gametape coach` as a user runs it, on what `gametape eval` and `gametape solve` leave behind."""

import asyncio
import json
from pathlib import Path

import pytest

from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert
from gametape.tasks.worlds.spec import preset
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate
from gametape.train.rollouts import AnnotatedEpisode
from gametape.train.run_directory import save_annotated_trajectory

from .command import run

ROOT = Path(__file__).parents[2]
TASK = ROOT / "examples/tasks/double"


@pytest.fixture(autouse=True)
def home(task_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_HOME", str(task_home))


@pytest.fixture(scope="module")
def clumsy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rollout in a world that went wrong at its second and its fifth turn."""
    out = tmp_path_factory.mktemp("coach") / "out"
    knobs = ("--count", "2", "--horizon", "6", "--load-bearing", "6")
    made = run("worlds", "make", "--out", out / "suite", *knobs, "--json")
    assert made.code == 0, made.err
    done = run("eval", out / "suite", "--model", "scripted:clumsy", "--out", out / "eval", "--trajectories", "--json")
    assert done.code == 0, done.err
    return out


def test_targets_have_everything_the_contract_names_and_are_kept(clumsy: Path, tmp_path: Path) -> None:
    rollout, *_ = sorted((clumsy / "eval/trajectories").glob("*.json"))
    out = tmp_path / "kept.json"
    words = ("coach", rollout, "--task", clumsy / "suite", "--model", "scripted:clumsy", "--json")
    done = run(*words, "--gates", "g0,g1", "--out", out)
    assert done.code == 1, done.err  # a written policy reads no hint
    targets = done.answer["targets"]
    assert [target["step"] for target in targets] == [4, 7]
    for target in targets:
        assert target.keys() >= {"step", "span", "source", "type", "hint", "hint_tokens", "gates", "used", "kl"}
        assert target["hint"].startswith("Reminder: a ")
        assert (target["source"], target["used"], target["kl"]) == ("tool_error", False, None)
        assert {name: gate["passed"] for name, gate in target["gates"].items()} == {"g0": False, "g1": True}
        assert target["hint_tokens"] == len(target["hint"]) + 2
        assert 0 <= target["span"][0] < target["span"][1]
    assert done.answer["stored"] == str(out)
    kept = json.loads(out.read_text())["extra"]["gametape"]["targets"]
    assert [hint["evidence"] for hint in kept] == [target["evidence"] for target in targets]
    assert run("trajectory", "check", out).code == 0
    assert "gametape" not in json.loads(rollout.read_text())["extra"]


def test_stored_targets_are_scored_again_without_a_new_look(clumsy: Path, tmp_path: Path) -> None:
    rollout, *_ = sorted((clumsy / "eval/trajectories").glob("*.json"))
    words = ("--task", clumsy / "suite", "--model", "scripted:clumsy", "--json")
    out = tmp_path / "kept.json"
    first = run("coach", rollout, *words, "--out", out)
    again = run("coach", out, *words, "--again")
    assert again.code == 1, again.err
    assert [target["step"] for target in again.answer["targets"]] == [4, 7]
    assert [target["hint"] for target in again.answer["targets"]] == [one["hint"] for one in first.answer["targets"]]
    nothing = run("coach", rollout, *words, "--again")
    assert (nothing.code, nothing.err.strip().count("\n")) == (2, 0)
    assert "has no targets of an earlier run" in nothing.err


def test_a_person_may_say_where_and_what(clumsy: Path, tmp_path: Path) -> None:
    rollout = sorted((clumsy / "eval/trajectories").glob("*.json"))[0]
    mine = tmp_path / "mine.json"
    mine.write_bytes(rollout.read_bytes())
    words = ("coach", mine, "--task", clumsy / "suite", "--model", "scripted:clumsy", "--json")
    done = run(*words, "--target", "3", "--hint", "rule : look twice")
    assert done.code == 1, done.err
    first = done.answer["targets"][0]
    assert (first["step"], first["source"], first["hint"]) == (3, "given", "rule : look twice")
    assert len(json.loads(mine.read_text())["extra"]["gametape"]["targets"]) == 3  # in place, unless said otherwise


@pytest.mark.slow
def test_a_task_in_a_sandbox_is_forked_there(tmp_path: Path) -> None:
    done = run("solve", TASK, "--model", "scripted:clumsy", "--out", tmp_path / "run", "--json")
    rollout = Path(done.answer["trajectory"])
    words = ("coach", rollout, "--task", TASK, "--model", "scripted:clumsy", "--out", tmp_path / "kept.json", "--json")
    done = run(*words, "--gates", "g2", "--forks", "2")
    assert done.code == 1, done.err
    targets = done.answer["targets"]
    assert [target["type"] for target in targets] == [
        "malformed call",
        "unknown tool",
        "wrong arguments read",
        "no call",
    ]
    assert done.answer["forks"] == 8
    assert all("success 1/1 -> 1/1" in target["gates"]["g2"]["detail"] for target in targets)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--target", "3"), "belong together"),
        (("--target", "1", "--hint", "x"), "not a turn"),
        (("--gates", "g3"), "g0, g1 and g2"),
        (("--task", "worlds:moderate"), "not among them"),
    ],
)
def test_bad_input_is_one_line(clumsy: Path, words: tuple[str, ...], says: str) -> None:
    rollout = sorted((clumsy / "eval/trajectories").glob("*.json"))[0]
    done = run("coach", rollout, "--task", clumsy / "suite", "--model", "scripted:clumsy", *words)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert says in done.err


def test_without_token_ids_there_is_nothing_to_splice_into(clumsy: Path, tmp_path: Path) -> None:
    rollout = json.loads(sorted((clumsy / "eval/trajectories").glob("*.json"))[0].read_text())
    for step in rollout["steps"]:
        for key in ("prompt_token_ids", "completion_token_ids", "logprobs"):
            step.get("metrics", {}).pop(key, None)
        for key in ("loss_mask", "policy_versions"):
            step.get("extra", {}).get("gametape", {}).pop(key, None)
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(rollout))
    done = run("coach", bare, "--task", clumsy / "suite", "--model", "scripted:clumsy")
    assert (done.code, "no token ids" in done.err) == (2, True)


def test_stored_targets_that_are_none_are_one_line(clumsy: Path, tmp_path: Path) -> None:
    output = json.loads(sorted((clumsy / "eval/trajectories").glob("*.json"))[0].read_text())
    output["extra"]["gametape"] = {"targets": [{"foo": 1}]}
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(output))
    done = run("coach", kept, "--task", clumsy / "suite", "--model", "scripted:clumsy", "--again")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "extra.gametape.targets[0]: " in done.err


def test_what_a_rollout_said_cannot_command_the_terminal(clumsy: Path, tmp_path: Path) -> None:
    rollout, *_ = sorted((clumsy / "eval/trajectories").glob("*.json"))
    output = json.loads(rollout.read_text())
    for step in output["steps"]:
        for result in (step.get("observation") or {"results": []})["results"]:
            result["content"] = result["content"].replace("error", "\x1b[2J\x1b]0;mine\x07 error")
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(output))
    words = ("--task", clumsy / "suite", "--model", "scripted:clumsy", "--out", tmp_path / "kept.json")
    done = run("coach", hostile, *words)
    assert (done.code, "mine" in done.out, "\x1b" in done.out + done.err) == (1, True, False), done.err


def test_what_training_leaves_is_found_by_the_name_of_its_worlds(tmp_path: Path) -> None:
    """Rollouts of a run are of a part of the worlds that a name stands for."""
    world = World(preset("moderate").model_copy(update={"seed": 12345, "split": "train"}))
    wrong = next(turn for turn, job in enumerate(world.plan.jobs, start=1) if job.marking)
    episode = asyncio.run(demonstrate(world, ErrorAtTurnsExpert([wrong]), byte_chat_format())).episode
    kept = save_annotated_trajectory(AnnotatedEpisode("d0", episode, [], 0.0), tmp_path)
    done = run("coach", kept, "--task", "worlds:moderate", "--model", "scripted:clumsy", "--json")
    assert done.code == 1, done.err
    assert [target["step"] for target in done.answer["targets"]] == [wrong + 2]
