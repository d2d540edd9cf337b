"""How the command line fails: the help of a bare group, near names, one JSON object where `--json` was given."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gametape.cli import doctor
from gametape.cli.failure import describe_failure, wants_json
from gametape.cli.main import VERBS, app, main

from .command import GAMETAPE, run

SLUGS = Path(__file__).parents[2] / "examples/tasks/slugs"

GROUPS = [
    verb
    for verb in VERBS
    if getattr(typer.main.get_command(app).get_command(None, verb), "commands", None)  # type: ignore[attr-defined]
    and verb not in ("models", "studio")  # these do something by themselves
]


def test_the_bare_command_shows_its_help() -> None:
    bare, asked = run(), run("--help")
    assert (bare.code, bare.err) == (0, "")
    assert bare.out == asked.out
    assert len(bare.out.splitlines()) > len(VERBS)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_a_command_shows_its_help_and_says_what_it_needs(group: str) -> None:
    bare, asked = run(group), run(group, "--help")
    assert bare.code == 2
    assert bare.out == asked.out
    assert bare.err.startswith(f"gametape: {group} needs a command: ")
    assert bare.err.count("\n") == 1


@pytest.mark.parametrize("group", GROUPS)
def test_no_line_of_a_list_of_commands_is_cut_off(group: str) -> None:
    assert "..." not in run(group, "--help").out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["slove"], "did you mean solve?"),
        (["trajectry", "check"], "did you mean trajectory?"),
        (["task", "chek"], "no such command: task chek; did you mean check or"),
        (["vault", "list"], "no such command: vault list; there are init, show,"),
        (["solve", "--mdoel", "x"], "did you mean --model"),
        (["eval", "--temprature=1"], "did you mean --temperature"),
    ],
)
def test_the_near_name_is_suggested(words: list[str], near: str) -> None:
    done = run(*words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert near in done.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["slove", "--json"], 2),
        (["task", "--json", "show"], 2),
        (["task", "show", "--json"], 2),
        (["task", "show", "--json", "/nowhere"], 2),
        (["task", "show", "/nowhere", "--nope", "--json"], 2),
        (["eval", "/nowhere", "--model", "scripted:expert", "--json"], 2),
        (["solve", "t", "--max-turns", "many", "--json"], 2),
        (["audit", "{trajectory}", "--judge", "smollm2", "--json"], 3),
        (["vault", "show", "nothing", "--vault", "{vault}", "--json"], 2),
    ],
)
def test_every_failure_is_an_object_too(tmp_path: Path, words: list[str], code: int) -> None:
    step = {"step_id": 1, "source": "agent", "message": "x"}
    document = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [step]}
    (tmp_path / "t.json").write_text(json.dumps(document))
    if "{vault}" in words:
        assert run("vault", "init", "--vault", tmp_path / "vault").code == 0
    names = {"{trajectory}": str(tmp_path / "t.json"), "{vault}": str(tmp_path / "vault")}
    done = run(*(names.get(word, word) for word in words), cwd=tmp_path)
    assert done.code == code
    assert done.err.count("\n") == 1
    assert done.answer == {"error": done.err.removeprefix("gametape: ").strip(), "exit_code": code}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("task show t --json", True),
        ("task --json", True),
        ("nonsense --json", True),
        ("solve t --model --json", False),
        ("solve t --model=x --json", True),
        ("eval t -n 3 --json", True),
        ("eval t -n --json", False),
        ("sandbox exec --json -- ls", True),
        ("sandbox exec -- ls --json", False),
        ("sandbox exec ls --json", False),
        ("thread say t -- --json", False),
        ("thread say --anyway t --json", True),
    ],
)
def test_only_an_option_asks_for_json(line: str, wanted: bool) -> None:
    assert wants_json(typer.main.get_command(app), line.split()) is wanted


def test_an_interrupt_is_an_object_too(tmp_path: Path) -> None:
    pipe = tmp_path / "log.jsonl"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, GAMETAPE, "watch", str(pipe), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with pipe.open("wb", buffering=0) as writer:  # returns once the command has begun to read
        writer.write(b'{"text": "x"}\n')
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1]) == {"error": "interrupted", "exit_code": 130}
    assert err == b"gametape: interrupted\n"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--max-turns", "1.5"), "'--max-turns': expected a whole number ("),
        (("--max-turns", "0"), "'--max-turns': expected greater than or equal to 1 ("),
        (("--temperature", "warm"), "'--temperature': expected a number ("),
    ],
)
def test_a_value_of_the_wrong_kind_is_said_in_plain_words(option: tuple[str, str], says: str) -> None:
    assert says in run("solve", "t", "--out", "x", *option).err


@pytest.mark.parametrize("words", [["goal", "list", "--json"], ["task", "show", str(SLUGS)]])
def test_output_that_nobody_reads_is_no_answer_of_no(words: list[str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, GAMETAPE, *words]
    environment = os.environ | {"GAMETAPE_HOME": str(tmp_path)}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_under_stdout_is_said(tmp_path: Path) -> None:
    for words in (["--help"], ["doctor", "--json"], ["task", "show", "examples/tasks/double"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, GAMETAPE, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 3, words
        assert done.stderr.count("\n") == 1, done.stderr
        assert "No space left" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_trouble(tmp_path: Path, closed: str) -> None:
    command = f"{sys.executable} {GAMETAPE} worlds make --out {tmp_path}/w --count 1 {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "w/suite.json").read_text().startswith("{")


def test_a_fault_of_our_own_keeps_its_traceback_and_is_an_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KeyError("gone")

    monkeypatch.setattr(doctor, "examine", fail)
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--json"])
    said = capsys.readouterr()
    assert ended.value.code == 70
    assert "Traceback" in said.err
    assert said.err.splitlines()[-1].startswith("gametape: internal error: KeyError")
    assert json.loads(said.out.splitlines()[-1])["exit_code"] == 70


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b"), 2, "a/b: No such file"),
        (OSError(28, "No space left on device"), 3, "free some space"),
        (OSError(24, "Too many open files"), 3, "Too many open files"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), 3, "[train]'"),
        (MemoryError(), 3, "out of memory"),
        (ValueError("embedded null byte"), 2, "NUL"),
    ],
)
def test_errors_of_the_system_have_an_exit_code(error: Exception, code: int, says: str) -> None:
    failure = describe_failure(error)
    assert failure.exit_code == code
    assert says in failure.line


def test_termination_is_an_object_too(tmp_path: Path) -> None:
    pipe = tmp_path / "log.jsonl"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, GAMETAPE, "watch", str(pipe), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with pipe.open("wb", buffering=0) as writer:
        writer.write(b'{"text": "x"}\n')
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    assert process.returncode == 143
    assert json.loads(out.splitlines()[-1]) == {"error": "terminated", "exit_code": 143}
