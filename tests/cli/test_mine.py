"""`gametape mine` as a real process, over a small code base."""

import hashlib
import json
import os
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task, read_task
from gametape.verify.verifier import Verifier

from ..patience import HANG
from ..tasks.mining.made import SHELF
from .command import Ran, run
from .mining import laid, mine
from .paused import kill, start_paused


def listing(directory: Path) -> dict[str, tuple[int, int, str]]:
    """Every file below, with what would tell that it was touched."""
    return {
        path.relative_to(directory).as_posix(): (
            path.lstat().st_mtime_ns,
            path.lstat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(directory.rglob("*"))
    }


def contents(directory: Path) -> dict[str, bytes]:
    """The files of all tasks, without the ledger."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.parent != directory
    }


def records(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "mine.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record.get("kind") == "candidate"]


class Mined(NamedTuple):
    source: Path
    out: Path
    ran: Ran
    untouched: bool


@pytest.fixture(scope="session")
def mined(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Mined:
    """Everything there is in the small code base, with one job."""
    place = tmp_path_factory.mktemp("mined")
    source = laid(place / "shelf-1.2", SHELF)
    before = listing(source)
    ran = mine(source, "--out", place / "out", "--jobs", "1", home=home)
    return Mined(source, place / "out", ran, listing(source) == before and {*os.listdir(place)} == {source.name, "out"})


def prepared(mined: Mined, out: Path, **options: Any) -> Path:
    """A run with other options that has looked the code base over and tried nothing yet."""
    header, learned = map(json.loads, (mined.out / "mine.jsonl").read_text().splitlines()[:2])
    assert learned["kind"] == "learned"
    out.mkdir()
    (out / "mine.jsonl").write_text(json.dumps({**header, **options}) + "\n" + json.dumps(learned) + "\n")
    return out


def test_the_answer_is_one_object_with_absolute_paths(mined: Mined) -> None:
    answer = mined.ran.answer
    assert mined.ran.code == 0
    assert len(mined.ran.out.splitlines()) == 1
    assert answer["candidates"] == answer["valid"] == 7
    assert answer["rejected"] == {}
    assert answer["refused"] is None
    assert answer["suite"]["tests"] == 16
    assert answer["suite"]["flaky"] == 0
    assert 0 < answer["seconds_per_candidate"] < answer["seconds"]
    assert len({*answer["tasks"]}) == 7
    assert all(Path(task).is_absolute() and Path(task, "task.toml").is_file() for task in answer["tasks"])


def test_nothing_but_the_new_directory_is_touched(mined: Mined) -> None:
    assert mined.untouched
    left = {path.name for path in mined.out.iterdir()}
    assert left == {"mine.jsonl", *(Path(task).name for task in mined.ran.answer["tasks"])}


def test_every_task_can_be_shown(mined: Mined) -> None:
    for task in mined.ran.answer["tasks"]:
        subject = read_task(Path(task))
        assert subject.task.tests.fail_to_pass
        assert subject.task.tests.held_out
        assert (subject.task.origin and subject.task.origin.name) == "shelf"
    shown = run("task", "show", task, "--json")
    assert shown.code == 0
    assert shown.answer["tests"]["held_out"] > 0


def verdicts(task: Path, home: Path, tmp_path: Path) -> tuple[bool, bool]:
    """Whether the author's code passes, and whether the untouched tree does."""
    subject = load_task(task, home, lambda _: None)
    assert subject.reference is not None
    with Verifier(subject, home, keep_verdicts=False) as verifier:
        found = []
        for name, tree in (("reference", subject.reference), ("start", subject.start)):
            place = tmp_path / f"{task.name}-{name}"
            place.mkdir()
            tree.write_to(place)
            found.append(verifier.verify(place, "train", "layered").passed)
    return found[0], found[1]


def test_the_authors_code_passes_and_the_untouched_tree_does_not(mined: Mined, home: Path, tmp_path: Path) -> None:
    assert verdicts(Path(mined.ran.answer["tasks"][1]), home, tmp_path) == (True, False)


def test_checkout_and_verify_go_on_from_there(mined: Mined, home: Path, tmp_path: Path) -> None:
    task = mined.ran.answer["tasks"][0]
    for more, expected in ((["--solved"], 0), ([], 1)):
        place = tmp_path / str(expected)
        assert run("task", "checkout", task, "--out", place, *more, "--home", home).code == 0
        assert run("verify", task, "--workspace", place, "--profile", "train", "--home", home).code == expected


def test_no_task_holds_what_it_asks_for(mined: Mined) -> None:
    for record in records(mined.out):
        start = SourceTree(contents(mined.out / record["task"] / "environment"))
        whole = "\n".join(start.text(path) for path in start)
        for place in record["deleted"]:
            path, _, rest = place.partition("::")
            name = rest.partition(":")[0]
            body = (mined.source / path).read_text().partition(f"def {name}(")[2].partition("\n\n\n")[0]
            last = [line for line in body.splitlines() if line.strip()][-1].strip()
            assert last not in whole


def test_an_archive_and_two_jobs_give_the_same_tasks(mined: Mined, home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "shelf-1.2.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(mined.source, arcname="shelf-1.2")
    ran = mine(archive, "--out", tmp_path / "out", "--jobs", "2", home=home)
    assert ran.code == 0
    assert contents(tmp_path / "out") == contents(mined.out)
    assert [Path(task).name for task in ran.answer["tasks"]] == [Path(task).name for task in mined.ran.answer["tasks"]]


def begun(words: list[str | Path], home: Path, out: Path, count: int) -> "subprocess.Popen[str]":
    """A run that has written down so many candidates and stands still."""
    command = ["mine", *words, "--out", out, "--home", home, "--jobs", "1", "--resume", "--json"]
    return start_paused(command, "mine.jsonl", '"kind": "candidate"', count, out.with_name("ready"))


def test_a_killed_run_goes_on_where_it_was(mined: Mined, home: Path, tmp_path: Path) -> None:
    out = prepared(mined, tmp_path / "out")
    process = begun([mined.source], home, out, 2)
    kill(process)
    finished = (out / "mine.jsonl").read_text().splitlines()
    tasks = {record["task"] for record in records(out)}
    assert len(tasks) == 2
    before = {name: listing(out / name) for name in tasks}
    (out / ".unfinished" / "half").mkdir(parents=True, exist_ok=True)
    ran = mine(mined.source, "--out", out, "--resume", "--jobs", "2", home=home)
    assert ran.code == 0
    assert (out / "mine.jsonl").read_text().splitlines()[: len(finished)] == finished
    assert {name: listing(out / name) for name in tasks} == before
    assert contents(out) == contents(mined.out)
    assert ran.answer["tasks"] == [str(out / Path(task).name) for task in mined.ran.answer["tasks"]]
    assert ran.answer["candidates"] == 7


def test_an_interrupted_run_says_so_and_goes_on(mined: Mined, home: Path, tmp_path: Path) -> None:
    """Of another seed: the same features in another order, and cut another way."""
    out = prepared(mined, tmp_path / "out", seed=1)
    process = begun([mined.source, "--seed", "1"], home, out, 2)
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=HANG)
    assert process.returncode == 130
    assert json.loads(output) == {"error": f"interrupted; --resume goes on with {out}", "exit_code": 130}
    assert said.splitlines()[-1] == f"gametape: interrupted; --resume goes on with {out}"
    assert "Traceback" not in said
    assert len(records(out)) == 2
    assert mine(mined.source, "--out", out, "--seed", "1", home=home).code == 2
    ran = mine(mined.source, "--out", out, "--seed", "1", "--resume", home=home)
    assert ran.code == 0
    names = [Path(task).name for task in ran.answer["tasks"]]
    usual = [Path(task).name for task in mined.ran.answer["tasks"]]
    assert sorted(names) == sorted(usual)
    assert names != usual
    assert contents(out) != contents(mined.out)
    assert mine(mined.source, "--out", out, "--resume", home=home).code == 2


def test_a_limit_can_be_raised_later_with_a_brought_interpreter(mined: Mined, home: Path, tmp_path: Path) -> None:
    python = next(path for path in home.glob("environments/*/bin/python"))
    words = [mined.source, "--out", tmp_path / "out", "--python", python]
    one = mine(*words, "--limit", "1", home=home).answer
    three = mine(*words, "--limit", "3", "--resume", home=home).answer
    assert (one["candidates"], three["candidates"]) == (1, 3)
    assert one["tasks"] == three["tasks"][:1]
    assert [Path(task).name for task in three["tasks"]] == [Path(task).name for task in mined.ran.answer["tasks"][:3]]


def test_unions(mined: Mined, home: Path, tmp_path: Path) -> None:
    out = prepared(mined, tmp_path / "out", union=2)
    ran = mine(mined.source, "--out", out, "--resume", "--union", "2", "--limit", "2", home=home)
    assert ran.code == 0
    assert ran.answer["valid"] == ran.answer["candidates"] == 2
    assert ran.answer["parts"]["candidates"] == 4
    for record in records(out):
        assert len(record["seeds"]) == 2
        assert {*record["seeds"]} <= {*record["deleted"]}
    assert verdicts(Path(ran.answer["tasks"][0]), home, tmp_path) == (True, False)


def test_the_removal_tier(mined: Mined, home: Path, tmp_path: Path) -> None:
    out = prepared(mined, tmp_path / "out", tier="removal")
    ran = mine(mined.source, "--out", out, "--resume", "--tier", "removal", "--limit", "1", home=home)
    assert ran.code == 0
    (record,) = records(out)
    start = contents(out / record["task"] / "environment")
    for place in record["deleted"]:
        path, _, rest = place.partition("::")
        (text,) = (start[name].decode() for name in start if name.endswith(path))
        assert f"def {rest.partition(':')[0]}(" not in text
    assert verdicts(Path(ran.answer["tasks"][0]), home, tmp_path) == (True, False)


def test_bugs(mined: Mined, home: Path, tmp_path: Path) -> None:
    out = prepared(mined, tmp_path / "out", kind="bug")
    ran = mine(mined.source, "--out", out, "--resume", "--kind", "bug", "--limit", "2", home=home)
    assert ran.code == 0
    assert ran.answer["valid"] == 2
    for task in ran.answer["tasks"]:
        assert b"NotImplementedError" not in b"".join(contents(Path(task) / "environment").values())
    assert verdicts(Path(ran.answer["tasks"][0]), home, tmp_path) == (True, False)


def test_people_get_a_table(mined: Mined, home: Path) -> None:
    ran = run("mine", mined.source, "--out", mined.out, "--resume", "--jobs", "1", "--home", home)
    assert ran.code == 0
    assert "shelf 1.2: 16 tests that can be relied on" in ran.out
    assert f"7 tasks in {mined.out}" in ran.out
