"""`gametape thread`, as a person types it: words, kills and refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gametape.cli.thread_view import short_model_name
from gametape.record.installation import command_line
from gametape.record.trajectory_file import load_trajectory

from .command import GAMETAPE, run


def script(path: Path, *turns: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path.name}"


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"text": f"I {tool}.", "tool_calls": [{"name": tool, "arguments": arguments}]}


def test_a_conversation_from_its_beginning_to_its_archive(tmp_path: Path) -> None:
    where = ("--home", tmp_path / "home")
    model = script(
        tmp_path / "s.jsonl",
        call("shell", command="echo two >> a.txt"),
        call("remember", name="a", text="it counts"),
        {"text": "It counts."},
        {"text": "Twice."},
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    begun = run(
        "thread", "new", "--title", "count", "--model", model, "--workspace", "work", *where, "--json", cwd=tmp_path
    )
    name = begun.answer["thread"]
    said = run("thread", "say", name, "What is it?", "--key", "first", *where)
    assert (said.code, said.out) == (0, "It counts.\n")
    assert "echo two" in said.err
    again = run("thread", "say", name, "What is it?", "--key", "first", *where, "--json")
    assert (again.answer["answer"], again.answer["turns"]) == ("It counts.", 3)
    assert run("thread", "show", name, "--patch", *where).out.endswith(" one\n+two\n")
    forked = run("thread", "fork", name, "--at", "3", *where, "--json").answer["thread"]
    titles = [(one["thread"], one["title"]) for one in run("thread", "list", *where, "--json").answer["threads"]]
    assert sorted(titles) == sorted([(name, "count"), (forked, "count")])
    file = run("thread", "archive", name, *where, "--json").answer["trajectory"]
    assert load_trajectory(Path(file)).turns == 3
    refused = run("thread", "say", name, "More?", *where)
    assert (refused.code, "archived" in refused.err, refused.err.count("\n")) == (1, True, 1)


def test_killed_in_the_middle_of_a_turn_it_goes_on(tmp_path: Path) -> None:
    where = ("--home", str(tmp_path / "home"))
    model = script(
        tmp_path / "s.jsonl",
        call("remember", name="a", text="one"),
        call("shell", command="echo x >> f; sleep 3; cat f"),
        {"text": "Done."},
    )
    name = run("thread", "new", "--model", model, *where, "--json", cwd=tmp_path).answer["thread"]
    words = ("thread", "say", name, "Go", "--key", "k", *where)
    process = subprocess.Popen([sys.executable, GAMETAPE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / "home/threads" / name / "trajectory.jsonl"
    while journal.read_bytes().count(b"\n") < 4:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert run(*words).out == "Done.\n"
    steps = run("thread", "show", name, *where, "--json").answer["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent", "agent"]
    assert steps[3]["calls"][0]["answer"] == "x"


def test_the_newest_thread_is_the_last(tmp_path: Path) -> None:
    where = ("--home", tmp_path / "home")
    model = script(tmp_path / "s.jsonl", {"text": "It counts."})
    older = run("thread", "new", "--model", model, *where, cwd=tmp_path)
    newer = run("thread", "new", "--model", model, *where, cwd=tmp_path)
    name = newer.out.strip()
    assert newer.err == f"next: {command_line('thread', 'say', name)} 'TEXT'\n"
    assert run("thread", "say", "last", "What is it?", *where).out == "It counts.\n"
    assert run("thread", "show", "last", *where, "--json").answer["thread"] == name
    assert run("thread", "show", older.out.strip(), *where, "--json").answer["said"] == 0
    nothing = run("thread", "say", "last", "a", "--home", tmp_path / "empty")
    assert (nothing.code, "last: there is no thread in" in nothing.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("toy@http://127.0.0.1:8931/v1", "toy"),
        ("openai:toy@http://127.0.0.1:8931/v1?window=4096", "openai:toy"),
        ("scripted:/home/ann/turns.jsonl", "turns.jsonl"),
        ("openrouter:maker/model", "model"),
        ("smollm2,toy@http://127.0.0.1:8931/v1", "smollm2,toy"),
    ],
)
def test_a_list_names_the_model_without_its_address(name: str, short: str) -> None:
    assert short_model_name(name) == short


def test_bytes_that_are_no_text_are_refused_in_one_line(tmp_path: Path) -> None:
    where = ("--home", tmp_path / "home")
    name = run(
        "thread", "new", "--model", script(tmp_path / "s.jsonl", {"text": "Hi."}), *where, cwd=tmp_path
    ).out.strip()
    for words in ((os.fsdecode(b"a\xff"),), ("a", "--key", os.fsdecode(b"\xfe"))):
        refused = run("thread", "say", name, *words, *where)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "not text in UTF-8" in refused.err
    assert run("thread", "say", name, "a", *where).out == "Hi.\n"
