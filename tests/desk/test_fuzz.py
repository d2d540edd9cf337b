"""What people, editors and torn disks leave in a home: no verb shows a traceback, and none changes or loses a file."""

import io
import json
import random
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from gametape.cli import shared
from gametape.cli.main import main
from gametape.desk.desk import open_desk
from gametape.desk.heartbeats import registry

from .fuzz import changed

BEAT = (
    "---\nmodel: scripted:turns.jsonl\nworkspace: /tmp\ncadence: {every: 1h}\n"
    "event: {files: ['*.txt'], git_ref: {repository: /tmp, ref: main}, every: 5s}\n"
    "active_hours: {from: '08:00', to: '20:00', days: [mon, tue]}\ntimezone: Europe/Berlin\nguard: 'true'\n"
    "budget: {tokens: 100, cost: 0.5}\n---\nIs all well?\n"
)
SETTINGS = '[notify]\ncommand = ["true"]\n[outbox]\nwebhook = "http://127.0.0.1:1/x"\n'
NOTE = "# Bob\n\n- [ ] ask about lunch\n- [x] done @2026-01-02\n[[agent/other]]\n"
QUICK, ALL = 200, 10_000
FOUND = (349, 367, 606, 713, 1710, 1966, 2040, 2380, 2511, 3867, 4160, 4295, 7518)
"""Seeds of inputs that once ended in a traceback."""


class Home:
    """A home with one of everything, and what it held at first."""

    def __init__(self, top: Path) -> None:
        self.top, self.home = top, top / "home"
        (top / "turns.jsonl").write_text('{"text": "Hello."}\n')
        self.thread = json.loads(self.run("thread", "new", "--model", "scripted:turns.jsonl", "--json")[1])["thread"]
        assert self.run("thread", "say", self.thread, "Hello?")[0] == 0
        with open_desk(self.home) as desk:
            registry.add(desk, "beat", BEAT)
        (self.home / "vault/people").mkdir(parents=True, exist_ok=True)
        (self.home / "vault/people/bob.md").write_text(NOTE)
        assert self.run("vault", "accept")[0] == 0
        (self.home / "desk/desk.toml").write_text(SETTINGS)
        (self.home / "goals/goal-1").mkdir(parents=True)
        (self.home / "goals/goal-1/goal.json").write_text(
            json.dumps(
                {"goal_id": "goal-1", "workspace": "/tmp", "success": "true", "model": "m", "instruction": "x"}
                | {"created": 1.0}
            )
        )
        (self.home / "goals/goal-1/result.json").write_text(
            json.dumps({"reached": False, "reason": "attempts", "attempts": [], "goal_id": "goal-1"})
        )
        place = self.home / "threads" / self.thread
        name = self.thread
        self.targets: dict[Path, tuple[tuple[str, ...], ...]] = {
            place / "thread.json": (("thread", "list"), ("thread", "show", name), ("thread", "fork", name)),
            place / "trajectory.jsonl": (("thread", "show", name), ("trajectory", "check", "@"), ("costs", "@")),
            place / "trajectory.digest": (("thread", "list"), ("thread", "show", name, "--last", "1")),
            self.home / "heartbeats/beat.md": (
                ("heartbeat", "list"),
                ("heartbeat", "add", "@", "--name", "new"),
                ("heartbeat", "pause", "beat"),
            ),
            self.home / "desk/desk.toml": (("outbox", "list"), ("desk", "status")),
            self.home / "goals/goal-1/goal.json": (("goal", "list"), ("goal", "show", "goal-1"), ("desk", "digest")),
            self.home / "goals/goal-1/result.json": (("goal", "list"), ("goal", "show", "goal-1"), ("desk", "digest")),
            self.home / "vault/people/bob.md": (
                ("vault", "show", "people/bob"),
                ("vault", "search", "lunch"),
                ("vault", "loops"),
                ("vault", "review"),
            ),
            self.home / "vault/.git/gametape/pending.json": (("vault", "review"), ("vault", "show")),
            self.top / "config/gametape/config.toml": (("heartbeat", "list"), ("thread", "list")),
        }
        self.kept = shutil.copytree(self.home, top / "kept", symlinks=True)

    def run(self, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        out, err, old = io.StringIO(), io.StringIO(), (sys.stdin, sys.stdout, sys.stderr)
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8", "surrogateescape")
        sys.stdout, sys.stderr = out, err
        shared.emitted_answers.clear()
        try:
            main(list(words))
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.stdin, sys.stdout, sys.stderr = old
        assert isinstance(code, int)
        return code, out.getvalue(), err.getvalue()

    def reset(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self.kept, self.home, symlinks=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: Path) -> Home:
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GAMETAPE_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config/gametape").mkdir(parents=True)
    (tmp_path / "config/gametape/config.toml").write_text('model = "scripted:turns.jsonl"\n')
    (tmp_path / "home/desk").mkdir(parents=True)
    shutil.copy(prepared, tmp_path / "home/desk/desk.sqlite")
    return Home(tmp_path)


def files(home: Path) -> dict[str, bytes]:
    """What a person or an agent has written; not what the desk keeps about it."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.suffix in (".md", ".json", ".jsonl", ".toml") and path.is_file() and ".git/" not in str(path)
    }


def fuzz(place: Home, seeds: Iterable[int]) -> None:
    originals = {target: target.read_bytes() if target.exists() else b"{}" for target in place.targets}
    for seed in seeds:
        chance = random.Random(seed)
        target = chance.choice([*place.targets])
        words = chance.choice(place.targets[target])
        target.write_bytes(changed(originals[target], seed))
        before = files(place.home)
        code, _, err = place.run(*(str(target) if word == "@" else word for word in words))
        told = (seed, target.name, words, code, err[-1500:])
        assert code in (0, 1, 2, 3), told
        assert "Traceback" not in err, told
        if code > 1:
            assert err.count("\n") == 1, told
        after = files(place.home)
        assert {name: after.get(name) for name in before} == before, told
        if set(after) - set(before) or "pending" in target.name or words[0] == "vault":
            place.reset()
        target.write_bytes(originals[target])
        if not (place.kept / target.relative_to(place.top / "home")).exists() if "home" in target.parts else False:
            target.unlink()


def test_a_sample_of_odd_files_shows_no_traceback_and_loses_nothing(place: Home) -> None:
    fuzz(place, (*FOUND, *range(QUICK)))


@pytest.mark.slow
def test_ten_thousand_odd_files_show_no_traceback_and_lose_nothing(place: Home) -> None:
    fuzz(place, range(ALL))


@pytest.mark.parametrize("verb", [("thread", "say", "thread-20200101-000000", "-")])
def test_odd_words_on_stdin_are_refused_in_a_line(place: Home, verb: tuple[str, ...]) -> None:
    for seed in range(100):
        code, _, err = place.run(*verb, stdin=changed(NOTE.encode(), seed))
        assert (code, err.count("\n")) == (2, 1), (seed, err)


def test_odd_names_in_a_vault_are_no_notes_and_stay(place: Home) -> None:
    chance = random.Random(7)
    folder = place.home / "vault" / "agent"
    folder.mkdir(exist_ok=True)
    names = {
        bytes(chance.choice(b"ab\xff\xc3 \n\t\\\"'-.*?$~") for _ in range(chance.randint(1, 12))) + b".md"
        for _ in range(60)
    }
    paths = [folder / name.decode("utf-8", "surrogateescape") for name in sorted(names)]
    for path in paths:
        path.write_bytes(chance.randbytes(50))
    for words in (("vault", "show"), ("vault", "review"), ("vault", "accept"), ("vault", "search", "a")):
        code, _, err = place.run(*words)
        assert (code in (0, 1), "Traceback" in err) == (True, False), err[-2000:]
    assert all(path.exists() for path in paths)
