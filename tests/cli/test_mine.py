"""`gametape mine` as a real process, over small code bases."""

import hashlib
import json
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from gametape.cli.mine import app
from gametape.core.errors import Lacking
from gametape.tasks.deletion import baseline
from gametape.tasks.directory import load_task, read_task
from gametape.verify.pipeline import Verifier
from gametape.verify.tree import Tree

from ..tasks.deletion.made import SHELF, around, environment, tree_of
from .command import GAMETAPE


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return answer


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.getbasetemp() / "shelf-home"
    try:
        environment(place)
    except Lacking as error:
        pytest.skip(f"no package index: {error}")
    return place


def mine(*words: str | Path, home: Path) -> Ran:
    done = subprocess.run(
        [GAMETAPE, "mine", *words, "--home", home, "--json"], capture_output=True, text=True, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def laid(directory: Path, files: Mapping[str, str]) -> Path:
    directory.mkdir(exist_ok=True)
    tree_of(files).write_to(directory)
    return directory


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
    done = subprocess.run([GAMETAPE, "task", "show", task, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["tests"]["held_out"] > 0


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
        words = ["task", "checkout", task, "--out", place, *more, "--home", home]
        assert subprocess.run([GAMETAPE, *words], capture_output=True, check=False).returncode == 0
        words = ["verify", task, "--workspace", place, "--profile", "train", "--home", home]
        assert subprocess.run([GAMETAPE, *words], capture_output=True, check=False).returncode == expected


def test_no_task_holds_what_it_asks_for(mined: Mined) -> None:
    for record in records(mined.out):
        start = Tree(contents(mined.out / record["task"] / "environment"))
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
    """A run that has written down so many candidates and goes on."""
    command = [GAMETAPE, "mine", *words, "--out", out, "--home", home, "--jobs", "1", "--resume", "--json"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - or nohup would keep it off
    )
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "mine.jsonl").exists() and (out / "mine.jsonl").read_text().count('"kind": "candidate"') >= count:
            return process
        time.sleep(0.01)
    process.kill()
    raise AssertionError(f"no {count} candidates: {process.communicate()}")


def test_a_killed_run_goes_on_where_it_was(mined: Mined, home: Path, tmp_path: Path) -> None:
    out = prepared(mined, tmp_path / "out")
    process = begun([mined.source], home, out, 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = (out / "mine.jsonl").read_text().splitlines()
    tasks = {record["task"] for record in records(out)}
    assert 2 <= len(tasks) < 7
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
    process = begun([mined.source, "--seed", "1"], home, out, 1)
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == ""
    assert said.splitlines()[-1] == f"gametape: interrupted; --resume goes on with {out}"
    assert "Traceback" not in said
    first = len(records(out))
    assert 1 <= first < 7
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


def bad(source: Path, *words: str | Path, home: Path, tmp_path: Path) -> Ran:
    """It leaves nothing behind, and says one line about what is wrong."""
    ran = mine(source, "--out", tmp_path / "new", *words, home=home)
    assert not (tmp_path / "new").exists()
    assert len([line for line in ran.err.splitlines() if line.startswith("gametape: ")]) == 1
    assert ran.err.splitlines()[-1].startswith("gametape: ")
    return ran


def refused(files: Mapping[str, str], home: Path, tmp_path: Path, *words: str) -> tuple[str, str]:
    ran = bad(laid(tmp_path / "shelf", files), *words, home=home, tmp_path=tmp_path)
    assert ran.code == 1
    answer = ran.answer
    assert (answer["candidates"], answer["valid"], answer["tasks"]) == (0, 0, [])
    assert f"gametape: refused ({answer['refused']['reason']}): " in ran.err
    return answer["refused"]["reason"], answer["refused"]["message"]


NO_TESTS = {name: text for name, text in SHELF.items() if not name.startswith("tests/")}
PLUGGY = {name.replace("shelf/", "pluggy/"): text.replace("shelf", "pluggy") for name, text in SHELF.items()}


@pytest.mark.parametrize(
    ("files", "reason", "message"),
    [
        ({}, "empty", "there is no Python in it (0 files)"),
        ({"notes.txt": "nothing"}, "empty", "there is no Python in it (1 files)"),
        (NO_TESTS, "no_tests", "no tests were found"),
        ({**SHELF, "shelf/sums.py": "def total(:\n"}, "syntax_error", "shelf/sums.py: line 1"),
        (PLUGGY, "self_hosting", "the test runner needs pluggy itself"),
    ],
)
def test_a_code_base_that_cannot_be_mined(
    files: dict[str, str], reason: str, message: str, home: Path, tmp_path: Path
) -> None:
    found, said = refused(files, home, tmp_path)
    assert found == reason
    assert message in said


HELP = "import os, socket, pathlib\n"
OUTSIDE = "def test_{0}():\n    pathlib.Path('/etc/{0}').write_text('x')\n"
NETWORK = "def test_{0}():\n    socket.create_connection(('192.0.2.1', 80), timeout=1)\n"
DELETES = "def test_{0}():\n    os.remove('pyproject.toml')\n    open('pyproject.toml', 'w').close()\n"
ORDER = "def test_{0}():\n    assert len(SEEN) == {0}\n    SEEN.append(1)\n"


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (OUTSIDE, "writes_outside"),
        (NETWORK, "needs_network"),
        (DELETES, "changes_files"),
        (ORDER, "order"),
    ],
)
def test_a_suite_that_cannot_be_relied_on(test: str, reason: str, home: Path, tmp_path: Path) -> None:
    text = HELP + "SEEN = []\n" + "".join(test.format(number) for number in range(8))
    found, said = refused(around(text), home, tmp_path, "--jobs", "2")
    assert found == reason
    assert "tests cannot be relied on" in said
    assert not Path("/etc/0").exists()


def test_a_suite_that_does_not_end(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "FIRST_SECONDS", 1.0)
    source = laid(tmp_path / "shelf", around("def test_it():\n    while True:\n        pass\n"))
    ran = CliRunner().invoke(app, [str(source), "--out", str(tmp_path / "out"), "--home", str(home), "--json"])
    assert ran.exit_code == 1
    assert json.loads(ran.stdout.splitlines()[-1])["refused"]["reason"] == "hangs"
    assert not (tmp_path / "out").exists()


def test_a_code_base_without_features(home: Path, tmp_path: Path) -> None:
    files = around("from shelf import twice\n\ndef test_a():\n    twice(1)\n\ndef test_b():\n    twice(2)\n")
    assert refused(files, home, tmp_path)[0] == "no_candidates"


def no_archive(place: Path) -> list[str | Path]:
    (place / "shelf.tar.gz").write_text("no archive")
    return [place / "shelf.tar.gz"]


def nothing_there(place: Path) -> list[str | Path]:
    return [place / "nowhere"]


def no_tests_there(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--tests", "checks"]


def limit_of_nothing(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--limit", "0"]


def no_python(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--python", "/bin/ls"]


def python_nowhere(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--python", place / "python"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (no_archive, "shelf.tar.gz"),
        (nothing_there, "nowhere"),
        (no_tests_there, "checks: no such file or directory in the code base"),
        (limit_of_nothing, "--limit"),
        (no_python, "/bin/ls"),
        (python_nowhere, "python"),
    ],
)
def test_bad_input_is_one_line(
    words: Callable[[Path], list[str | Path]], expected: str, home: Path, tmp_path: Path
) -> None:
    ran = bad(*words(tmp_path), home=home, tmp_path=tmp_path)  # type: ignore[arg-type]
    assert ran.code == 2
    assert ran.out == ""
    assert expected in ran.err.splitlines()[-1]


def test_a_directory_with_something_in_it_is_left_alone(home: Path, tmp_path: Path) -> None:
    source = laid(tmp_path / "shelf", SHELF)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    ran = mine(source, "--out", tmp_path / "out", home=home)
    assert ran.code == 2
    assert "out: not empty, or give the name of a new directory" in ran.err
    assert os.listdir(tmp_path / "out") == ["mine.txt"]


def test_people_get_a_table(mined: Mined, home: Path) -> None:
    words = [GAMETAPE, "mine", mined.source, "--out", mined.out, "--resume", "--jobs", "1", "--home", home]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "shelf 1.2: 16 tests that can be relied on" in done.stdout
    assert f"7 tasks in {mined.out}" in done.stdout
