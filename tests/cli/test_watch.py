"""`gametape watch`, `costs`, `calibration` and `trajectory export` as a script calls them."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gametape.cli.main import main
from tests.cli.command import GAMETAPE, run
from tests.watch.logs import sentence


def _log(path: Path, healthy: int = 300, collapsed: int = 80) -> Path:
    rng = random.Random(0)
    texts = [sentence(rng) for _ in range(healthy)] + ["Standing by as ever, friend."] * collapsed
    path.write_text("".join(json.dumps({"text": text, "model": "m"}) + "\n" for text in texts))
    return path


def test_an_alarm_is_an_answer_with_evidence(tmp_path: Path) -> None:
    ran = run("watch", _log(tmp_path / "log.jsonl"), "--json")
    assert ran.code == 1
    assert ran.answer["steps"] == 380
    first = ran.answer["alarms"][0]
    assert 300 < first["step"] <= 350
    assert first["statistic"] >= first["threshold"]
    assert first["file"] == str((tmp_path / "log.jsonl").absolute())
    by_name = {alarm["monitor"]: alarm for alarm in ran.answer["alarms"]}
    assert by_name["phrase"]["evidence"]["phrase"] == "standing by as ever friend"
    assert {"name", "tolerated", "threshold"} <= ran.answer["monitors"][0].keys()


def test_sixty_identical_calls_need_no_baseline(tmp_path: Path) -> None:
    log = tmp_path / "ls.jsonl"
    call = {"text": "", "tool_calls": [{"name": "shell", "arguments": {"command": "ls"}}], "result": "a.py"}
    log.write_text((json.dumps(call) + "\n") * 60)
    ran = run("watch", log, "--json")
    assert ran.code == 1
    first = ran.answer["alarms"][0]
    assert (first["monitor"], first["step"], first["times"]) == ("repeated call", 5, 4)


def test_people_see_evidence_and_a_plot(tmp_path: Path) -> None:
    ran = run("watch", _log(tmp_path / "log.jsonl"))
    assert ran.code == 1
    assert "phrase: standing by as ever friend" in ran.out
    assert any(line.startswith("phrase ") and "!" in line for line in ran.out.splitlines())
    assert "too few steps so far for: subject, spend" in ran.out
    assert "learning" not in ran.out


def test_a_healthy_log_and_a_baseline_of_ones_own(tmp_path: Path) -> None:
    healthy = _log(tmp_path / "healthy.jsonl", collapsed=0)
    assert run("watch", healthy, "--json").code == 0
    sick = tmp_path / "sick.txt"
    sick.write_text("Standing by as ever, friend.\n" * 60)
    ran = run("watch", sick, "--baseline", healthy, "--json")
    assert ran.code == 1
    assert ran.answer["alarms"][0]["step"] <= 50
    assert run("watch", sick, "--json").answer["alarms"] == []


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = _log(tmp_path / "log.jsonl", collapsed=0)
    absent = str(tmp_path / "absent")
    for words in (
        ["watch", absent],
        ["watch", str(log), "--format", "csv"],
        ["watch", str(log), "--tic", "("],
        ["watch", str(log), "--baseline", absent],
        ["watch", str(log), str(log), "--follow"],
        ["costs", str(log)],
        ["calibration", absent],
        ["trajectory", "export", str(log), "--otlp", "http://127.0.0.1:1"],
    ):
        assert _main(words) == 2, words
        assert len(capsys.readouterr().err.splitlines()) == 1


def _main(words: list[str]) -> object:
    with pytest.raises(SystemExit) as left:
        main(words)
    return left.value.code


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", collapsed=0)
    command = [sys.executable, GAMETAPE, "watch", str(log), "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        time.sleep(1)
        with log.open("a") as file:
            for _ in range(60):
                file.write(json.dumps({"text": "Standing by as ever, friend."}) + "\n")
        assert 300 < json.loads(process.stdout.readline())["alarm"]["step"] <= 350
        process.send_signal(signal.SIGINT)
        answer = json.loads(process.stdout.read().splitlines()[-1])
    assert process.returncode == 1
    assert answer["alarms"]


def _attempts(directory: Path) -> Path:
    directory.mkdir()
    rng = random.Random(3)
    for number in range(40):
        passed = rng.random() < 0.5
        turn: dict[str, Any] = {"step_id": 1, "source": "agent", "message": "x", "metrics": {"cost_usd": 1.0}}
        said = {"before": 0.5, "after": 0.8 if passed else 0.3}
        document = {
            "schema_version": "ATIF-v1.7",
            "trajectory_id": f"t{number}",
            "agent": {"name": "a", "version": "1", "model_name": "m"},
            "steps": [turn],
            "extra": {"task": f"t{number}", "outcome": "passed" if passed else "failed", "confidence": said},
        }
        (directory / f"{number}.json").write_text(json.dumps(document))
    return directory


def test_costs_and_calibration_of_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(_attempts(tmp_path / "attempts"))
    assert _main(["costs", directory, "--json"]) == 0
    costs = json.loads(capsys.readouterr().out)
    assert costs["attempts"] == 40
    assert costs["by"]["model"]["m"]["cost_usd"] == 40.0
    assert _main(["calibration", directory, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["n"] == 40
    assert scores["forecasts"]["after"]["auroc"]["value"] == 1.0
    assert scores["forecasts"]["before"]["skill"]["value"] < 0.05
    assert scores["forecasts"]["calibrated"]["skill"]["low"] > 0.3
    _main(["costs", directory])
    _main(["calibration", directory])
    output = capsys.readouterr().out
    assert "model: m" in output
    assert "40 attempts" in output


def test_the_logs_of_a_directory_are_named(tmp_path: Path) -> None:
    for number in range(7):
        _log(tmp_path / f"{number}.jsonl", healthy=20, collapsed=0)
    said = run("watch", str(tmp_path)).err
    assert f"reading {tmp_path / '0.jsonl'}, " in said
    assert f"{tmp_path / '4.jsonl'}, and 2 more files\n" in said
