"""Wrong input to the verbs of the desk: one clear line, exit code 2, and nothing is begun."""

from pathlib import Path

import pytest

from gametape.cli.main import main

MODEL = "scripted:turns.jsonl"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("goal list --home file", "a file, where the home"),
        (f"goal run --workspace . --success true --model {MODEL} --home file/deeper", "a file, where the home"),
        (f"goal run --workspace . --success true --model {MODEL} --database mysql://x", "SQLite or PostgreSQL"),
        ("thread list --home file", "a file, where the home"),
        (f"thread new --model {MODEL} --vault file", "no vault can be made here"),
        (f"thread new --model {MODEL} --budget-usd inf", "--budget-usd"),
        ("vault init --vault file", "no vault can be made here"),
        ("heartbeat add model.md", "no such model"),
        ("heartbeat add workspace.md", "no such workspace"),
        ("heartbeat add thread.md", "no such thread"),
        ("heartbeat log nobody", "no such heartbeat"),
        ("outbox list --home settings", "notify.command"),
        ("feedback trajectory.json --kept --patch file", "--patch goes with --from-git"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GAMETAPE_DATABASE", raising=False)
    (tmp_path / "file").write_text("")
    (tmp_path / "turns.jsonl").write_text('{"text": "Hello."}\n')
    for name, matter in (
        ("model", "model: none"),
        ("workspace", f"model: {MODEL}\nworkspace: none"),
        ("thread", f"model: {MODEL}\nthread: thread-0"),
    ):
        (tmp_path / f"{name}.md").write_text(f"---\n{matter}\ncadence: {{every: 1h}}\n---\nIs all well?\n")
    (tmp_path / "settings/desk").mkdir(parents=True)
    (tmp_path / "settings/desk/desk.toml").write_text('[notify]\ncommand = "mail"\n')
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n")) == (2, 1), error
    assert said in error
    assert not any((tmp_path / "home" / directory).exists() for directory in ("goals", "threads", "heartbeats"))
