"""Wrong inputs to every verb, as a table: the words, and the exit code that they must have."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
STEP: dict[str, Any] = {"step_id": 1, "source": "agent", "message": "x"}
TRAJECTORY: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "a", "version": "1", "model_name": "m"},
    "steps": [STEP],
}
NOISE = bytes(range(256)) * 4


class Wrong(NamedTuple):
    name: str
    words: str
    code: int = 2
    """`~` stands for a space in a word, `^` for a control character, `%` for NUL, `!` for a byte that is not UTF-8."""

    @property
    def argv(self) -> list[str]:
        characters = str.maketrans({"~": " ", "^": "\x1b", "!": "\udcff", "%": "\0"})
        return [word.translate(characters) if word != "''" else "" for word in self.words.split(" ")]


WRONG_INPUTS = [
    # trajectories
    Wrong("costs of random bytes", "costs noise.json"),
    Wrong("costs of a device", "costs /dev/zero"),
    Wrong("costs of a pipe", "costs pipe.json"),
    Wrong("costs of nesting", "costs deep.json"),
    Wrong("costs of a huge integer", "costs huge-integer.json"),
    Wrong("costs of a price that is none", "costs good.json --cpu-hour nan"),
    Wrong("costs of an endless price", "costs good.json --cpu-hour inf"),
    Wrong("costs of an empty name", "costs ''"),
    Wrong("costs of a name with NUL", "costs a%b"),
    Wrong("costs of a name too long", "costs " + "x" * 5000),
    Wrong("calibration of an empty directory", "calibration empty"),
    Wrong("calibration of a loop", "calibration loop"),
    Wrong("calibration with a huge seed", "calibration forecasts --seed " + "9" * 5000),
    Wrong("calibration with a seed that is none", "calibration forecasts --seed nan"),
    Wrong("audit of a newer version", "audit newer.json"),
    Wrong("audit with no judge", "audit good.json --judge ''", 3),
    Wrong("audit with a judge of bytes", "audit good.json --judge scripted:noise.json"),
    Wrong("audit of a name with escapes", "audit ^]0;mine.json"),
    Wrong("watch of a directory of bytes", "watch bytes"),
    Wrong("watch of numbers", "watch numbers.jsonl --format jsonl"),
    Wrong("watch with a zero baseline", "watch log.jsonl --baseline 0"),
    Wrong("watch with an endless baseline", "watch log.jsonl --baseline " + "9" * 5000),
    Wrong("watch with a foul tic", "watch log.jsonl --tic (?P<x"),
    Wrong("watch following a directory", "watch attempts --follow --tic ["),
    Wrong("studio of a file", "studio --runs good.json"),
    Wrong("studio at an address of another machine", "studio --host 192.0.2.1 --port 0", 3),
    Wrong("studio export of nothing", "studio export nowhere --out run.html"),
    Wrong("studio export of random bytes", "studio export noise.json --out run.html"),
    Wrong("trajectory check of a directory", "trajectory check empty"),
    Wrong("trajectory convert onto itself", "trajectory convert good.json --out good.json"),
    Wrong("trajectory convert onto itself by a link", "trajectory convert good.json --out link.json"),
    Wrong("trajectory convert into a directory", "trajectory convert good.json --out empty"),
    Wrong("trajectory convert below a file", "trajectory convert good.json --out file/new.json"),
    Wrong("trajectory convert onto a device", "trajectory convert good.json --out /dev/full"),
    Wrong("trajectory export to no URL", "trajectory export good.json --otlp not~a~url"),
    Wrong("trajectory export to a file", "trajectory export good.json --otlp file:///etc/passwd"),
    Wrong("feedback that contradicts itself", "feedback good.json --kept --reverted"),
    Wrong("feedback on bytes", "feedback noise.json --kept"),
    Wrong("feedback from no repository", "feedback good.json --from-git empty --patch good.patch"),
    Wrong("trajectory show of bytes", "trajectory show noise.json"),
    Wrong("trajectory show of nesting", "trajectory show deep.json"),
    Wrong("trajectory show of a pipe", "trajectory show pipe.json"),
    Wrong("trajectory show of no turn", "trajectory show good.json --turn 0"),
    Wrong("trajectory show of turns backwards", "trajectory show good.json --turns 9-3"),
    Wrong("trajectory show of a huge turn", "trajectory show good.json --turn " + "9" * 5000),
    Wrong("trajectory show of no subagent", "trajectory show good.json --subagent ^nobody"),
    Wrong("examples below a file", "examples --out file/below"),
    Wrong("report of bytes", "report noise.json --out new.html"),
    Wrong("report of an empty directory", "report empty --out new.html"),
    Wrong("report into a directory", "report good.json --out empty"),
    Wrong("report over what it reports on", "report good.json --out good.json"),
    Wrong("report below a file", "report good.json --out file/new.html"),
    # tasks
    Wrong("task show of a file", "task show file"),
    Wrong("task show of bytes", "task show task-of-bytes"),
    Wrong("task show of wrong types", "task show task-of-types"),
    Wrong("task show of a huge integer", "task show task-of-integers"),
    Wrong("task show of a loop", "task show loop"),
    Wrong("task checkout into what is full", "task checkout task --out full"),
    Wrong("task checkout into a file", "task checkout task --out file"),
    Wrong("task checkout below a device", "task checkout task --out /dev/null/x"),
    Wrong("task check of no runs", "task check task --runs 0"),
    Wrong("task check with unknown hacks", "task check task --hacks some"),
    Wrong("task export over a file", "task export task --format swebench --out file"),
    Wrong("task export into what is full", "task export task --format verifiers --out full"),
    Wrong("task export in no format", "task export task --format csv --out new"),
    Wrong("verify of a file", "verify task --workspace file"),
    Wrong("verify of a dangling link", "verify task --workspace dangling"),
    Wrong("verify of a name that is not UTF-8", "verify task --workspace a!b"),
    Wrong("mine of a file", "mine file --out new"),
    Wrong("mine of bytes named as an archive", "mine noise.tar.gz --out new"),
    Wrong("mine into its own source", "mine package --out package"),
    Wrong("mine with a Python that is none", "mine package --out new --python file"),
    Wrong("mine with no jobs", "mine package --out new --jobs 0"),
    Wrong("worlds in what is full", "worlds make --out full --count 1"),
    Wrong("worlds without end", "worlds make --out new --count -1"),
    Wrong("worlds of no rate", "worlds make --out new --base-rate nan"),
    Wrong("worlds with a long horizon", "worlds make --out new --horizon 99999999999999999999"),
    Wrong("katas over a file", "katas make --out file --count 1"),
    Wrong("katas of no family", "katas make --out new --family ''"),
    # models and agents
    Wrong("solve with bytes as a script", "solve task --model scripted:noise.json --out new"),
    Wrong("solve with a directory as a script", "solve task --model scripted:empty --out new"),
    Wrong("solve below a file", "solve task --model scripted:expert --out file/new"),
    Wrong("solve at no temperature", "solve task --model scripted:expert --out new --temperature nan"),
    Wrong("solve with no tool there is", "solve task --model scripted:expert --out new --tools levitate"),
    Wrong("solve resuming nothing", "solve task --model scripted:expert --out empty --resume"),
    Wrong("solve with constraints of bytes", "solve task --model scripted:expert --out new --constraints noise.toml"),
    Wrong("solve with constraints of types", "solve task --model scripted:expert --out new --constraints types.toml"),
    Wrong("solve with a model of no name", "solve task --model '' --out new"),
    Wrong("solve with no such port", "solve task --model openai:m@http://127.0.0.1:99999/v1 --out new"),
    Wrong("eval of a list of nothing", "eval nowhere.txt --model scripted:expert"),
    Wrong("eval of bytes", "eval noise.json --model scripted:expert"),
    Wrong("eval of fewer attempts than k", "eval task --model scripted:expert -k 5 -n 2"),
    Wrong("eval of unknown worlds", "eval worlds:flat --model scripted:expert"),
    Wrong("eval into what is full", "eval task --model scripted:expert --out full"),
    Wrong("eval of the same option twice", "eval task --model scripted:expert --limit 1 --limit 0"),
    Wrong("coach of a file without token ids", "coach good.json --task worlds:moderate --model scripted:expert"),
    Wrong("coach with half a hint", "coach good.json --task worlds:moderate --model scripted:expert --target 3"),
    Wrong("coach with two lines", "coach good.json --task t --model m --target 1 --hint a^b --gates g9"),
    Wrong("train on bytes", "train noise.toml --out new"),
    Wrong("train on wrong types", "train types.toml --out new"),
    Wrong("train with a setting of nothing", "train config.toml --out new --set ="),
    Wrong("train resuming a file", "train --resume file"),
    Wrong("train with both", "train config.toml --resume empty"),
    Wrong("train into what is full", "train config.toml --out full"),
    Wrong("demo resuming and beginning", "demo --resume empty --out new"),
    Wrong("demo with a negative seed", "demo --quick --out new --seed -1"),
    Wrong("models fetch of another", "models fetch gpt-9"),
    Wrong("examples below a file", "examples --out file"),
    Wrong("examples below a device", "examples --out /dev/null/x"),
    Wrong("models test of no name", "models test ''"),
    Wrong("models test of bytes", "models test scripted:noise.json"),
    Wrong("models test of nobody", "models test model@http://127.0.0.1:1/v1", 3),
    Wrong("models test without time", "models test scripted:turns.jsonl --seconds nan"),
    Wrong("init with no name", "init --yes --no-test --model ''"),
    Wrong("init at no cost", "init --yes --no-test --model scripted:turns.jsonl --max-cost nan"),
    Wrong(
        "init with an endless budget", "init --yes --no-test --model scripted:turns.jsonl --max-tokens " + "9" * 5000
    ),
    # the sandbox
    Wrong("sandbox with a policy of bytes", "sandbox exec --policy noise.toml --json -- true"),
    Wrong("sandbox with a policy of types", "sandbox exec --policy types.toml --json -- true"),
    Wrong("sandbox with a nested policy", "sandbox exec --policy deep.json --json -- true"),
    Wrong("sandbox without time", "sandbox exec --timeout nan --json -- true"),
    Wrong("sandbox with less than no memory", "sandbox exec --memory -1 --json -- true"),
    Wrong("sandbox of a file", "sandbox exec --workspace file --json -- true"),
    Wrong("sandbox of no backend", "sandbox exec --backend jail --json -- true"),
    # the desk
    Wrong("goal in a file", "goal run --workspace file --success true --model scripted:turns.jsonl"),
    Wrong("goal without a command", "goal run --workspace empty --success '' --model scripted:turns.jsonl"),
    Wrong("goal with a deadline that is none", "goal run --workspace empty --success true --model m --deadline nan"),
    Wrong("goal with an id that climbs", "goal show ../../etc"),
    Wrong("goal in a newer home", "goal show goal-1 --home newer"),
    Wrong("thread with a foul budget", "thread new --model scripted:turns.jsonl --budget-usd nan"),
    Wrong("thread with instructions of a directory", "thread new --model scripted:turns.jsonl --instructions empty"),
    Wrong("thread that is not there", "thread say thread-20000101-000000 hello"),
    Wrong("thread in a newer home", "thread show thread-20261116-000000 --home newer"),
    Wrong("heartbeat of bytes", "heartbeat add noise.md"),
    Wrong("heartbeat with a foul name", "heartbeat add beat.md --name ../up"),
    Wrong("heartbeat that never beats", "heartbeat add never.md"),
    Wrong("outbox in a database of bytes", "outbox list --home noise-home", 3),
    Wrong("outbox with a foul database", "outbox list --database postgresql://nobody@127.0.0.1:1/x", 3),
    Wrong("desk with foul settings", "desk status --home foul-settings"),
    Wrong("desk serving a database of bytes", "desk serve --home noise-home", 3),
    Wrong("desk repairing no database", "desk repair --home empty"),
    Wrong("desk repairing another's database", "desk repair --database postgresql://nobody@127.0.0.1:1/x"),
    Wrong("desk with a digest of no time", "desk digest --hours nan"),
    Wrong("desk with a digest of an age", "desk digest --hours 1e9"),
    Wrong("goal that is nested too deep", "goal show goal-1 --home deep-home"),
    Wrong("thread that is nested too deep", "thread show thread-20261116-000000 --home deep-home"),
    Wrong("heartbeat with a digest and a model", "heartbeat add digest.md"),
    Wrong("vault in a file", "vault init --vault file"),
    Wrong("vault that is none", "vault review --vault empty"),
    Wrong("vault with a note that climbs", "vault show ../../etc/passwd --vault vault"),
    Wrong("vault synchronised with nothing", "vault sync --remote nowhere --vault vault"),
]


def lay_wrong_inputs(top: Path) -> None:
    """The files that the table names."""
    _lay_files(top)
    _lay_directories(top)
    _lay_homes(top)


def _lay_files(top: Path) -> None:
    text = json.dumps(TRAJECTORY)
    texts = {
        "file": "plain text\n",
        "good.json": text,
        "newer.json": text.replace("1.7", "9.0"),
        "deep.json": '{"schema_version": "ATIF-v1.7", "steps": ' + "[" * 100_000,
        "huge-integer.json": text.replace('"step_id": 1', '"step_id": ' + "9" * 5000),
        "numbers.jsonl": "1\n2\n3\n",
        "log.jsonl": '{"text": "x"}\n',
        "turns.jsonl": '{"text": "Hello."}\n',
        "nowhere.txt": "nowhere\n",
        "good.patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "types.toml": 'arm = 3\nlimits = "many"\nallow = 1\n[rl]\ngroups = "x"\n',
        "config.toml": (ROOT / "configs/rlvr-moderate.toml").read_text(),
        "beat.md": "---\nmodel: scripted:turns.jsonl\ncadence: {every: 1h}\n---\nIs all well?\n",
        "digest.md": "---\nmodel: scripted:turns.jsonl\ndigest: true\ncadence: {every: 1d}\n---\n",
        "never.md": "---\nmodel: scripted:turns.jsonl\ncadence: {cron: '0 0 31 2 *'}\n---\nIs all well?\n",
    }
    for name, content in texts.items():
        (top / name).write_text(content)
    for name in ("noise.json", "noise.toml", "noise.md", "noise.tar.gz"):
        (top / name).write_bytes(NOISE)
    (top / "link.json").symlink_to("good.json")
    (top / "loop").symlink_to("loop")
    (top / "dangling").symlink_to("nowhere")
    os.mkfifo(top / "pipe.json")


def _lay_directories(top: Path) -> None:
    for name in ("empty", "full", "bytes", "attempts", "forecasts", "package/tests"):
        (top / name).mkdir(parents=True)
    (top / "full/kept").write_text("kept")
    (top / "bytes/noise.json").write_bytes(NOISE)
    (top / "attempts/a.json").write_text(json.dumps(TRAJECTORY))
    for number in range(4):
        extra = {"task": f"t{number}", "outcome": "passed", "confidence": {"before": 0.5, "after": 0.5}}
        (top / f"forecasts/{number}.json").write_text(json.dumps(TRAJECTORY | {"extra": extra}))
    (top / "package/package.py").write_text("def f():\n    return 1\n")
    (top / "package/tests/test_package.py").write_text("from package import f\n\ndef test_f():\n    assert f() == 1\n")
    shutil.copytree(ROOT / "examples/tasks/double", top / "task")
    good = (top / "task/task.toml").read_text()
    for name, content in (
        ("task-of-bytes", NOISE),
        ("task-of-types", b'version = 1\nmetadata = "none"\n[verifier]\ntimeout_sec = "soon"\n'),
        ("task-of-integers", good.replace("timeout_sec = ", "timeout_sec = 9" + "9" * 5000 + " # ").encode()),
    ):
        (top / name).mkdir()
        (top / name / "task.toml").write_bytes(content)


def _lay_homes(top: Path) -> None:
    """A home of a version to come, one whose database is noise, one whose settings are."""
    goal = top / "newer/goals/goal-1"
    thread = top / "newer/threads/thread-20261116-000000"
    for directory, name in ((goal, "goal.json"), (thread, "thread.json")):
        directory.mkdir(parents=True)
        (directory / name).write_text('{"format": 99, "unknown": {"in": "this version"}}')
    for directory, name in (("goals/goal-1", "goal.json"), ("threads/thread-20261116-000000", "thread.json")):
        (top / "deep-home" / directory).mkdir(parents=True)
        (top / "deep-home" / directory / name).write_text("[" * 100_000)
    (top / "sealed-desk/desk").mkdir(parents=True)
    (top / "sealed-desk/desk/desk.sqlite").write_bytes(b"")
    (top / "noise-home/desk").mkdir(parents=True)
    (top / "noise-home/desk/desk.sqlite").write_bytes(NOISE)
    (top / "foul-settings/desk").mkdir(parents=True)
    (top / "foul-settings/desk/desk.toml").write_bytes(NOISE)
