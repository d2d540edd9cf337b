import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import read_tree
from gametape.tasks.writer import write_task

from ..tasks.made import HIDDEN, ROOT, START, SUITE, TASKS, staged_subject, subject, written
from .command import Ran, run

SLUGS = ROOT / "examples/tasks/slugs"


gametape = functools.partial(run, "task")


def test_show_tells_everything_but_the_held_out_tests(tmp_path: Path) -> None:
    task = written(tmp_path, staged_subject())
    ran = gametape("show", task, "--json")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 1
    assert ran.answer == {
        "name": "made/add",
        "mode": "shared",
        "instruction": "# Add\n\nWrite `add`.\n",
        "source_paths": ["add.py", "old.py"],
        "tests": {"fail_to_pass": ["tests/test_add.py::test_small"], "pass_to_pass": [], "held_out": 1},
        "difficulty": None,
        "stages": [
            {
                "name": "01-small",
                "instruction": "Small numbers.\n",
                "tests": {"fail_to_pass": ["tests/test_add.py::test_small"], "pass_to_pass": [], "held_out": 0},
            },
            {
                "name": "02-large",
                "instruction": "Large numbers.\n",
                "tests": {"fail_to_pass": [], "pass_to_pass": ["tests/test_add.py::test_small"], "held_out": 1},
            },
        ],
    }


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_show_is_readable_and_names_no_held_out_test(task: Path) -> None:
    output, ran = gametape("show", task, "--json").answer, gametape("show", task)
    assert ran.code == 0
    assert f"{len(output['tests']['fail_to_pass']) or len(output['tests']['pass_to_pass'])} to" in ran.out
    assert "_held_out" not in ran.out


def test_checkout_writes_the_starting_tree_and_says_where(tmp_path: Path) -> None:
    ran = gametape("checkout", SLUGS, "--out", "out", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert ran.answer["workspace"] == str(tmp_path / "out")
    assert ran.answer["source_paths"] == ["slugs.py"]
    assert ran.answer["instruction"] == (SLUGS / "instruction.md").read_text()
    assert len(ran.answer["visible_tests"]) == 11
    assert ran.answer["interpreter"] == sys.executable
    assert set(read_tree(tmp_path / "out")) == {"slugs.py", "tests/test_slugs.py"}
    assert "raise NotImplementedError" in (tmp_path / "out/slugs.py").read_text()


def test_the_told_interpreter_runs_the_visible_tests(tmp_path: Path) -> None:
    answer = gametape("checkout", SLUGS, "--out", tmp_path / "out", "--solved", "--json").answer
    command = [answer["interpreter"], "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *answer["visible_tests"]]
    done = subprocess.run(command, cwd=answer["workspace"], capture_output=True, text=True, check=False)
    assert "11 passed" in done.stdout


def test_checkout_of_a_package_says_how_to_import_it(tmp_path: Path) -> None:
    ran = gametape("checkout", ROOT / "examples/tasks/notes", "--out", tmp_path / "out")
    assert ran.code == 0
    assert f"13 visible tests: PYTHONPATH=src {sys.executable} -m pytest" in ran.out


def no_task_file(task: Path) -> None:
    (task / "task.toml").unlink()


def bad_toml(task: Path) -> None:
    (task / "task.toml").write_text("[task\n")


def a_leak(task: Path) -> None:
    (task / "environment/workspace/tests/test_add_held_out.py").write_bytes(HIDDEN)


def an_unknown_key(task: Path) -> None:
    (task / "task.toml").write_text((task / "task.toml").read_text().replace("mode =", "moed ="))


@pytest.mark.parametrize("verb", ["show", "checkout", "check"])
@pytest.mark.parametrize(
    ("breaking", "expected"),
    [
        (no_task_file, "no task.toml in it"),
        (bad_toml, "task.toml: not TOML"),
        (a_leak, "expected no held-out test, but tests/test_add_held_out.py::test_large is in it"),
        (an_unknown_key, "metadata.gametape.moed: there is no such field"),
    ],
)
def test_a_broken_task_is_one_line(verb: str, breaking: Callable[[Path], None], expected: str, tmp_path: Path) -> None:
    task = written(tmp_path)
    breaking(task)
    out = ["--out", tmp_path / "out"] if verb == "checkout" else []
    assert_one_line(gametape(verb, task, *out, "--json"), expected)
    assert not (tmp_path / "out").exists()


def assert_one_line(ran: Ran, expected: str) -> None:
    """On stderr; and with `--json` as the one object on stdout."""
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert expected in ran.err
    if ran.out:
        assert len(ran.out.splitlines()) == 1
        assert (ran.answer["exit_code"], expected in ran.answer["error"]) == (2, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["show", "nowhere"], "nowhere: expected a task directory, but there is nothing"),
        (["show", "file"], "file: expected a task directory, not a file"),
        (["show"], "Missing argument"),
        (["checkout", str(SLUGS)], "Missing option '--out'"),
        (["checkout", str(SLUGS), "--out", "."], "not empty"),
        (["checkout", str(SLUGS), "--out", "file"], "file: not a directory"),
        (["check", str(SLUGS), "--runs", "0"], "--runs"),
        (["check", str(SLUGS), "--hacks", "some"], "--hacks"),
        (["check", str(SLUGS), "nowhere"], "nowhere: expected a task directory"),
        (["export", str(SLUGS), "--format", "swebench", "--out", "file"], "file: is there already"),
        (["export", str(SLUGS), "--format", "verifiers", "--out", "file"], "file: not a directory"),
        (["export", str(SLUGS), "--format", "verifiers", "--out", "json"], "name of a Python package"),
        (
            ["export", str(SLUGS), "nowhere", "--format", "swebench", "--out", "out"],
            "nowhere: expected a task directory",
        ),
        (["export", str(SLUGS), str(SLUGS), "--format", "swebench", "--out", "out"], "export one of the two"),
        (["export", str(SLUGS), "--format", "swebench", "--out", "no/out"], "no/out: cannot be written"),
        (["export", str(SLUGS), "--format", "csv", "--out", "out"], "--format"),
        (["export", str(SLUGS), "--out", "out"], "Missing option '--format'"),
        (["chekc", str(SLUGS)], "no such command: task chekc"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], expected: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_one_line(gametape(*words, cwd=tmp_path), expected)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("verb", ["show", "checkout", "check", "export"])
def test_help_teaches_by_example(verb: str) -> None:
    ran = gametape(verb, "--help")
    assert ran.code == 0
    assert f"gametape task {verb} examples/tasks/" in ran.out


@pytest.mark.usefixtures("tasks_prepared_once")
def test_check_answers_for_one_task_and_for_several(tmp_path: Path) -> None:
    sound = written(tmp_path)
    unsolved = write_task(tmp_path / "unsolved", LoadedTask(subject(name="made/unsolved").task, START, SUITE))
    options = ("--runs", "1", "--hacks", "none", "--home", tmp_path / "home", "--json")
    one = gametape("check", sound, *options)
    assert one.code == 0
    assert one.answer == {
        "task": str(sound),
        "name": "made/add",
        "admitted": True,
        "reasons": [],
        "untouched": {"passed": False, "reward": one.answer["untouched"]["reward"]},
        "reference": {"runs": 1, "passed": 1, "rewards": one.answer["reference"]["rewards"]},
        "hacks": {"run": 0, "rewarded": 0, "unseen": 0, "failures": []},
        "mode": "shared",
        "modes": {"replay": 0, "split": 0, "shared": 2},
        "not_replayable": {"mode": 2},
        "not_replayed": dict.fromkeys(one.answer["not_replayed"], "mode"),
        "floor": {"progress": 0.0, "program": ""},
    }
    assert len(one.answer["not_replayed"]) == 2
    both = gametape("check", sound, unsolved, *options)
    assert both.code == 1
    assert len(both.out.splitlines()) == 1
    assert both.answer["admitted"] is False
    assert [task["admitted"] for task in both.answer["tasks"]] == [True, False]
    assert both.answer["reasons"][0].startswith("made/unsolved: there is no reference")
    assert both.answer["untouched"] == {"passed": False}
    assert both.answer["reference"] == {"runs": 1, "passed": 1}
    assert both.answer["hacks"] == {"run": 0, "rewarded": 0, "unseen": 0}


@pytest.mark.usefixtures("tasks_prepared_once")
def test_check_is_readable(tmp_path: Path) -> None:
    unsolved = write_task(tmp_path / "unsolved", LoadedTask(subject().task, START, SUITE))
    ran = gametape("check", unsolved, "--hacks", "none", "--home", tmp_path / "home")
    assert ran.code == 1
    first, ways, reason = ran.out.splitlines()
    assert first.startswith("not admitted  ")
    assert ways.strip().startswith("shared: 2 tests in one process with the code")
    assert reason.strip() == "there is no reference that shows the task can be solved (solution/files)"


def test_export_writes_instances_and_says_where(tmp_path: Path) -> None:
    ran = gametape("export", *TASKS, "--format", "swebench", "--out", "out.jsonl", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert ran.answer == {"written": [str(tmp_path / "out.jsonl")]}
    instances = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len({each["instance_id"] for each in instances}) == len(TASKS)


def test_export_writes_a_package_and_says_where(tmp_path: Path) -> None:
    ran = gametape("export", SLUGS, "--format", "verifiers", "--out", "My_tasks", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert ran.answer == {"written": [str(tmp_path / "My_tasks")]}
    assert 'packages = ["my_tasks"]' in (tmp_path / "My_tasks/pyproject.toml").read_text()
    assert read_tree(tmp_path / "My_tasks/my_tasks/tasks/gametape__slugs") == read_tree(SLUGS)


@pytest.mark.parametrize("form", ["swebench", "verifiers"])
def test_a_task_without_a_solution_is_not_exported(form: str, tmp_path: Path) -> None:
    unsolved = write_task(tmp_path / "unsolved", LoadedTask(subject().task, START, SUITE))
    ran = gametape("export", SLUGS, unsolved, "--format", form, "--out", tmp_path / "out-tasks", "--json")
    assert_one_line(ran, "unsolved: has no solution")
    assert not (tmp_path / "out-tasks").exists()


def test_export_is_readable(tmp_path: Path) -> None:
    ran = gametape("export", SLUGS, "--format", "swebench", "--out", "out.jsonl", cwd=tmp_path)
    assert ran.out == "out.jsonl: 1 task\n"
