"""`gametape eval` and `gametape katas` as a user runs them: real processes, killed and resumed."""

import json
from pathlib import Path

import pytest

from .command import run
from .paused import kill, start_paused

ROOT = Path(__file__).parents[2]
TASK = ROOT / "examples/tasks/double"


@pytest.fixture(autouse=True)
def home(task_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_HOME", str(task_home))


def test_worlds_have_everything_the_contract_names(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("eval", "worlds:moderate", "--model", "scripted:noisy", "-n", "4", "-k", "2", "--limit", "5", "--json")
    done = run(*words, "--out", out, "--seed", "7", "--trajectories")
    assert done.err.splitlines()[0] == "evaluating: attempts (0 of 20)"
    answer = done.answer
    assert done.code == 0, done.err
    assert (answer["n"], answer["k"], answer["tasks"], answer["attempts"], answer["errors"]) == (4, 2, 5, 20, 0)
    assert 0.0 <= answer["pass_hat_k"] <= answer["success"]["rate"] <= answer["pass_at_k"] <= 1.0
    assert answer["success"]["rate"] < 1.0
    assert [row["horizon"] for row in answer["by_horizon"]] == [12]
    assert [set(point) >= {"step", "s", "low", "high"} for point in answer["survival"]] == [True] * 12
    assert 1 <= answer["first_derailed_step"] <= 12
    assert {"recovery_rate", "cost_per_success"} <= answer.keys()
    report = json.loads(Path(answer["report"]).read_text())
    assert report == {name: value for name, value in answer.items() if name != "report"}
    assert len(list((out / "trajectories").glob("*.json"))) == 20
    again = run(*words, "--out", tmp_path / "again", "--seed", "7").answer
    assert again["success"] == answer["success"]


def test_after_a_kill_only_what_is_missing_is_played(tmp_path: Path) -> None:
    words = ["worlds:long", "--model", "scripted:noisy", "-n", "6", "--limit", "10", "--out", str(tmp_path / "out")]
    attempts = tmp_path / "out/attempts.jsonl"
    kill(start_paused(["eval", *words, "--json"], "attempts.jsonl", "", 10, tmp_path / "ready"))
    before = attempts.read_text().splitlines()
    refused = run("eval", *words)
    assert refused.code == 2
    assert "--resume" in refused.err
    done = run("eval", *words, "--resume", "--json")
    after = attempts.read_text().splitlines()
    assert done.code == 0, done.err
    assert after[:10] == before
    assert len(after) == 1 + 60
    assert done.answer["attempts"] == 60


def test_tasks_and_katas_are_played_by_their_experts(tmp_path: Path) -> None:
    katas = run("katas", "make", "--out", tmp_path / "katas", "--count", "1", "--seed", "2", "--json")
    assert katas.code == 0, katas.err
    assert katas.answer["suite"] == str(tmp_path / "katas")
    listed = tmp_path / "list.txt"
    listed.write_text(f"{TASK}\n\n{Path(katas.answer['tasks'][0]).relative_to(tmp_path)}\n")
    done = run("eval", listed, "--model", "scripted:expert", "--json")
    assert done.code == 0, done.err
    assert (done.answer["tasks"], done.answer["pass_at_k"], done.answer["errors"]) == (2, 1.0, 0)
    assert {row["cell"] for row in done.answer["by_cell"]} == {"gametape/double", "katas-arithmetic"}


def test_the_expert_solves_what_takes_a_long_turn_and_a_turn_that_is_cut_off_is_said() -> None:
    task = ROOT / "examples/tasks/slugs"
    whole = run("eval", task, "--model", "scripted:expert", "--json").answer
    assert (whole["success"]["rate"], whole["cut_off"], whole["max_turn_tokens"]) == (1.0, 0, 16_384)
    cut = run("eval", task, "--model", "scripted:expert", "--max-turn-tokens", "60", "--json").answer
    assert (cut["success"]["rate"], cut["cut_off"], cut["errors"]) == (0.0, 1, 0)
    assert "1 of 1 attempts" in run("eval", task, "--model", "scripted:expert", "--max-turn-tokens", "60").out


@pytest.mark.slow
def test_the_expert_solves_everything(tmp_path: Path) -> None:
    run("katas", "make", "--out", tmp_path / "katas", "--count", "12", "--seed", "2")
    for suite in (ROOT / "examples/tasks", tmp_path / "katas", "worlds:moderate", "worlds:long"):
        answer = run("eval", suite, "--model", "scripted:expert", "--limit", "12", "--json").answer
        assert (answer["success"]["rate"], answer["cut_off"]) == (1.0, 0), suite


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere", "--model", "scripted:expert"), "no such suite"),
        (("worlds:easy", "--model", "scripted:nobody"), "no such script"),
        (("worlds:easy", "--model", "scripted:expert", "-k", "3", "-n", "2"), "pass@3"),
        (("worlds:easy", "--model", "scripted:expert", "--resume"), "--out"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], says: str) -> None:
    done = run("eval", *words)
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1


def test_a_run_goes_on_with_the_limits_it_was_begun_with(tmp_path: Path) -> None:
    words = ["worlds:easy", "--model", "scripted:expert", "--limit", "2", "--out", tmp_path / "out"]
    assert run("eval", *words, "--max-turn-tokens", "512", "--max-seconds", "600").code == 0
    attempts = tmp_path / "out/attempts.jsonl"
    header, *records = attempts.read_text().splitlines()
    begun = {**json.loads(header), "max_seconds": None}  # as earlier versions wrote it
    attempts.write_text("\n".join([json.dumps(begun), records[0], ""]))
    done = run("eval", *words, "--resume", "--json")
    assert (done.code, done.answer["max_turn_tokens"], done.answer["max_seconds"]) == (0, 512, None), done.err
    refused = run("eval", *words, "--resume", "--max-turn-tokens", "9")
    assert (refused.code, "max_turn_tokens 512, not 9" in refused.err) == (2, True)
    attempts.write_text("\n".join([json.dumps({**begun, "max_turns": "many"}), records[0], ""]))
    assert run("eval", *words, "--resume").code == 2
