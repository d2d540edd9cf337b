"""A browser for all tests that need one, and the runs that it looks at: as the commands themselves make them."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gametape.desk.desk import open_desk
from gametape.desk.vault.vault import NoteWriter, Vault
from tests.cli.command import run

from .chromium import MISSING, Chromium, has_chromium

QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart"
THREAD_TURNS = [
    {"text": "I read it first.", "tool_calls": [{"name": "shell", "arguments": {"command": "cat shop.py"}}]},
    {"text": "`total` adds one to the sum. Shall I mend it?"},
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    if not has_chromium():
        pytest.skip(MISSING)
    with Chromium.open() as browser:
        yield browser


@dataclass(frozen=True)
class RealRuns:
    """`runs` has a demo; `home` a goal, a thread, a draft and a note that was changed."""

    runs: Path
    home: Path
    goal: str
    thread: str


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> RealRuns:
    place = tmp_path_factory.mktemp("real")
    runs, home = place / "runs", place / "home"
    words = ("--home", home, "--json")
    assert run("demo", "--quick", "--out", runs / "demo", *words).code == 0
    shutil.copytree(QUICKSTART, place, dirs_exist_ok=True)
    turns = place / "thread.jsonl"
    turns.write_text("".join(json.dumps(turn) + "\n" for turn in THREAD_TURNS))
    shop, model = ("--workspace", place / "shop"), f"scripted:{place / 'turns.jsonl'}"
    goal = run(
        "goal", "run", *shop, "--success", "pytest -q", "--instruction", "Mend the shop.", "--model", model, *words
    )
    assert goal.code == 0, goal.err
    thread = run("thread", "new", "--title", "the shop", *shop, "--model", f"scripted:{turns}", *words)
    assert run("thread", "say", thread.answer["thread"], "What is wrong with the shop?", *words).code == 0
    with open_desk(home) as desk:
        desk.outbox.draft("k", thread.answer["thread"], "ada@example.org", "The shop", "It is mended.")
    vault = Vault.init(home / "vault") if not (home / "vault").is_dir() else Vault.open(home / "vault")
    vault.write("people/ada", "Ada likes tables.", NoteWriter("t", 1, "t/1"))
    return RealRuns(runs, home, goal.answer["goal_id"], thread.answer["thread"])
