"""A disk that takes no more: one line, exit code 3, and everything goes on when there is room."""

import asyncio
import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gametape.cli.main import main
from gametape.desk import jobs, runner
from gametape.desk.desk import open_desk
from gametape.desk.jobs import Desk, Job, JobSteps
from gametape.desk.runner import run_job
from gametape.desk.vault.vault import Vault
from gametape.desk.workflow_engine import open_job_client
from gametape.record.errors import OutOfDiskSpace
from tests.patience import HANG

RAN: list[str] = []


def fill() -> None:
    """No file of this process may grow any more; the kernel says so as it does of a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@contextmanager
def room_again() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def work(desk: Desk, steps: JobSteps, order: dict[str, Any]) -> dict[str, Any]:
    """The first time, it finds the disk full when it writes a file, or when its step is kept."""

    async def act() -> int:
        RAN.append(steps.key)
        if len(RAN) == 1 and order["full"] == "files":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some/file")
        if len(RAN) == 1:
            fill()
        return len(RAN)

    return {"times": await steps.once("act", act)}


@pytest.mark.parametrize(("full", "said"), [("files", "some/file: no room"), ("database", "the desk's database")])
def test_it_ends_no_errand(home: Path, monkeypatch: pytest.MonkeyPatch, full: str, said: str) -> None:
    monkeypatch.setattr(runner, "_SECONDS_BETWEEN_CHECKS", 0.1)
    monkeypatch.setitem(jobs.JOB_HANDLERS, "goal", f"{__name__}:work")
    jobs.load_handler.cache_clear()
    RAN.clear()

    async def within(desk: Desk) -> dict[str, Any]:
        async with asyncio.timeout(HANG):
            return await run_job(desk, Job("goal", "a", {"full": full}))

    with room_again(), pytest.raises(OutOfDiskSpace, match=said) as raised, open_desk(home) as desk:
        asyncio.run(within(desk))
    assert raised.value.exit_code == 3
    with open_desk(home) as desk:
        with open_job_client(desk) as errands:
            assert errands.unfinished() == ["a"]
        assert asyncio.run(within(desk)) == {"times": 2}
    jobs.load_handler.cache_clear()


def documents(home: Path) -> dict[str, bytes]:
    """What says which threads, notes and heartbeats there are, and what they are."""
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.suffix in (".md", ".json", ".jsonl")}


def test_verbs_say_so_in_a_line_and_nothing_is_half_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GAMETAPE_HOME", str(home))
    monkeypatch.delenv("GAMETAPE_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turns.jsonl").write_text(json.dumps({"text": "Hello."}) + "\n")
    (tmp_path / "beat.md").write_text("---\nmodel: scripted:turns.jsonl\ncadence: {every: 1h}\n---\nIs all well?\n")

    def ran(*words: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            main([*words])
        output = capsys.readouterr()
        return ended.value.code, output.err if ended.value.code else output.out.strip()

    code, thread = ran("thread", "new", "--model", "scripted:turns.jsonl")
    assert code == 0
    before = documents(home)
    for words in (
        ("thread", "say", thread, "Good morning."),
        ("thread", "new", "--model", "scripted:turns.jsonl"),
        ("thread", "fork", thread),
        ("heartbeat", "add", "beat.md"),
    ):
        with room_again():
            fill()
            code, said = ran(*words)
        assert (code, said.count("\n")) == (3, 1), said
    assert documents(home) == before
    assert ran("thread", "say", thread, "Good morning.") == (0, "Hello.")
    assert ran("heartbeat", "add", "beat.md")[0] == 0


def test_a_vault_whose_making_was_cut_off_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "vault" / ".git").mkdir(parents=True)
    Vault.init(tmp_path / "vault")
    assert Vault.open(tmp_path / "vault").repository.files("HEAD").keys() == {"README.md"}
