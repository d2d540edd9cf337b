"""`gametape heartbeat`, `outbox` and `desk` at the command line."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gametape.cli.main import main
from gametape.desk.desk import open_desk


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GAMETAPE_DATABASE", raising=False)
    return tmp_path / "home"


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON answer, and stderr."""
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    output = capsys.readouterr()
    lines = output.out.splitlines()
    return int(ended.value.code or 0), json.loads(lines[-1]) if lines else {}, output.err


def test_a_heartbeat_from_its_file_to_its_log(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "replies.jsonl").write_text('{"text": "All is well."}\n')
    (tmp_path / "workspace").mkdir()
    matter = f"model: scripted:{tmp_path}/replies.jsonl\nworkspace: {tmp_path}/workspace\ncadence: {{every: 1h}}"
    (tmp_path / "hourly.md").write_text(f"---\n{matter}\n---\nIs all well?\n")
    assert call(capsys, "heartbeat", "add", str(tmp_path / "hourly.md"))[0] == 0
    code, _, error = call(capsys, "heartbeat", "add", str(tmp_path / "hourly.md"))
    assert (code, error.count("\n")) == (2, 1)
    code, ended, _ = call(capsys, "heartbeat", "run", "hourly")
    assert (code, ended["outcome"], ended["detail"]) == (0, "asked", "All is well.")
    (row,) = call(capsys, "heartbeat", "list")[1]["heartbeats"]
    assert row["next"] > row["last"]["at"]
    assert row["tokens_today"] == ended["tokens"] > 0
    assert [tick["key"] for tick in call(capsys, "heartbeat", "log", "hourly")[1]["ticks"]] == [ended["key"]]
    assert call(capsys, "heartbeat", "pause", "hourly")[1]["paused"]
    assert not call(capsys, "heartbeat", "resume", "hourly")[1]["paused"]
    (notice,) = call(capsys, "desk", "status")[1]["notices"]
    assert notice["text"] == "All is well."
    assert call(capsys, "heartbeat", "remove", "hourly")[0] == 0
    assert call(capsys, "heartbeat", "run", "hourly")[0] == 2
    (home / "heartbeats" / "bad.md").write_text("nonsense")
    assert "front matter" in call(capsys, "heartbeat", "list")[1]["heartbeats"][0]["problem"]


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        ("", "written to {home}/outbox/{draft}.json"),
        ("[outbox]\ncommand = ['/bin/cat', '--']\n", "handed to the command /bin/cat"),
    ],
)
def test_approval_says_what_became_of_a_draft(
    home: Path, capsys: pytest.CaptureFixture[str], channel: str, told: str
) -> None:
    (home / "desk").mkdir(parents=True, exist_ok=True)
    (home / "desk/desk.toml").write_text(channel)
    with open_desk(home) as desk:
        draft = desk.outbox.draft("a", "thread-1", "ann", "Hi", "text")
    expected = told.format(home=home, draft=draft)
    for how in ("approved", "approved before"):
        with pytest.raises(SystemExit):
            main(["outbox", "approve", draft])
        assert capsys.readouterr().out == f"{draft}: {how}, {expected}\n"


def test_the_outbox_asks_a_person(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_desk(home) as desk:
        first, second = (desk.outbox.draft(key, "thread-1", "ann", "Hi", "text") for key in "ab")
    assert len(call(capsys, "outbox", "list")[1]["drafts"]) == 2
    approved = call(capsys, "outbox", "approve", first)[1]
    file = home / "outbox" / f"{first}.json"
    assert (approved["state"], approved["delivery"]) == ("sent", f"written to {file}")
    assert file.exists()
    assert call(capsys, "outbox", "reject", second, "--note", "no")[1]["note"] == "no"
    assert call(capsys, "outbox", "approve", second)[0] == 1
    assert call(capsys, "outbox", "approve", "draft-0")[0] == 2
    assert not call(capsys, "outbox", "list")[1]["drafts"]
    assert len(call(capsys, "outbox", "list", "--all")[1]["drafts"]) == 2


def test_a_database_that_is_none_is_bad_input_and_one_that_is_away_is_lacking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for url, expected in (("mysql://x/y", 2), ("nonsense", 2), (f"postgresql://x@/y?host={tmp_path}", 3)):
        code, _, error = call(capsys, "outbox", "list", "--database", url)
        assert (code, error.count("\n")) == (expected, 1), error


def test_help_imports_nothing_of_the_desk() -> None:
    import subprocess

    code = "import sys; from gametape.cli import main; print([m for m in sys.modules if 'desk' in m or 'dbos' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
