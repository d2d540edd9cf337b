"""`gametape init`: three questions, and a configuration that is written whole or not at all."""

import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gametape.cli.main import main
from gametape.engines import model_discovery
from gametape.engines.providers import Provider
from gametape.record.installation import command_line
from tests.cli.command import GAMETAPE
from tests.engines.ollama.server import OllamaServer, Turn

CALL = Turn(calls=[("look_up", {"key": "alpha"}), ("look_up", {"key": "beta"})])

REAL_DISCOVERY = model_discovery.discover_models


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the configuration will be. Nothing is found on this machine, and no key is set."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    for variable in ("GAMETAPE_CONFIG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    find_only(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "xdg" / "gametape" / "config.toml"


def find_only(monkeypatch: pytest.MonkeyPatch, *providers: Provider) -> None:
    """These servers instead of those at the usual ports of this machine."""
    hosted = [provider for provider in model_discovery.PROVIDERS.values() if provider.hosted]
    monkeypatch.setattr(model_discovery, "discover_models", lambda home, _: REAL_DISCOVERY(home, [*providers, *hosted]))


def init(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str, answers: str = ""
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
    with pytest.raises(SystemExit) as ended:
        main(["init", *words])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def written(config: Path) -> dict[str, Any]:
    return tomllib.loads(config.read_text())


def test_three_answers_make_a_configuration(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaServer([Turn("ready"), CALL, Turn("17"), Turn("28", "8 and 2")], model="small") as server:
        find_only(monkeypatch, Provider("cellar", "ollama", server.url))
        config.parent.mkdir(parents=True)
        config.write_text(f"[providers.cellar]\nurl = '{server.url}'\nprotocol = 'ollama'\n")
        code, out, err = init(capsys, monkeypatch, "--force", answers="7\n1\nlots\n2,000,000\nyes\n")
    assert code == 0, err
    assert "1  cellar:small" in err
    assert "there is no 7 in the list" in err
    assert "'lots' is neither" in err
    document = written(config)
    assert (document["model"], document["local_only"], document["budgets"]) == (
        "cellar:small",
        True,
        {"tokens": 2_000_000},
    )
    assert document["providers"]["cellar"]["url"] == server.url
    assert "an agent can work with it" in out
    assert f"written: {config}" in out
    assert f"next:    {command_line('goal', 'run')}" in out


def test_a_key_is_found_but_never_written(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code, out, err = init(capsys, monkeypatch, "--no-test", answers="1\nsome-model\n$2.50\n")
    assert code == 0, err
    assert written(config) == {"model": "openai:some-model", "budgets": {"cost": 2.5}}
    assert "sk-secret" not in config.read_text() + out + err
    code, _, err = init(capsys, monkeypatch, "--no-test", "--yes", "--force")
    assert code == 2
    assert "give --model" in err


def test_without_a_terminal(config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = init(capsys, monkeypatch, "--yes", "--model", "scripted:expert", "--max-cost", "3", "--json")
    assert code == 0
    answer = json.loads(out.splitlines()[-1])
    assert (answer["config"], answer["model"], answer["usable"]) == (str(config), "scripted:expert", True)
    assert answer["test"]["tools"]
    assert written(config) == {"model": "scripted:expert", "budgets": {"cost": 3.0}}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "nobody answers here: give --yes"),
        (("--yes",), 3, "no model was found here"),
        (("--yes", "--model", ""), 2, "empty"),
        (("--yes", "--model", "scripted:none.jsonl"), 2, "no such script"),
        (("--yes", "--model", "m@https://user:key@example.com"), 2, "a URL with a user in it is not used"),
        (("--yes", "--model", "openai:m", "--local-only"), 2, "is not on this machine"),
        (("--yes", "--model", "a,b,c"), 2, "a route is two models"),
        (("--yes", "--max-cost", "-1"), 2, "max-cost"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    ended, _, err = init(capsys, monkeypatch, *words)
    assert (ended, said in err) == (code, True), err
    assert not config.parent.parent.exists()


def test_a_file_that_is_there_is_asked_about(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config.parent.mkdir(parents=True)
    before = "model = 'smollm2'\n[budgets]\nturns = 9\ncost = 1.0\n[models.fast]\nmodel = 'ollama:x'\n"
    config.write_text(before)
    for words, answers in ((("--yes",), ""), ((), "no\n"), ((), "")):
        code, _, err = init(capsys, monkeypatch, "--model", "scripted:expert", *words, answers=answers)
        assert (code, config.read_text()) == (2, before), err
    code, _, err = init(capsys, monkeypatch, "--model", "scripted:expert", "--yes", "--force", "--no-test")
    assert code == 0, err
    assert written(config) == {
        "model": "scripted:expert",
        "budgets": {"turns": 9, "cost": 1.0},
        "models": {"fast": {"model": "ollama:x"}},
    }
    config.write_text("modle = 3")
    code, _, err = init(capsys, monkeypatch, "--model", "scripted:expert", "--yes", "--force")
    assert (code, "modle: no such key" in err, config.read_text()) == (2, True, "modle = 3")


def test_what_the_file_says_stays_where_nothing_else_is_answered(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config.parent.mkdir(parents=True)
    before = {"model": "scripted:expert", "local_only": True, "budgets": {"tokens": 300_000}}
    config.write_text("model = 'scripted:expert'\nlocal_only = true\n[budgets]\ntokens = 300000\n")
    for words, answers in ((("--yes", "--model", "scripted:expert"), ""), ((), "\n\n\n")):
        code, _, err = init(capsys, monkeypatch, "--force", "--no-test", *words, answers=answers)
        assert (code, written(config)) == (0, before), err
    code, _, err = init(capsys, monkeypatch, "--force", "--no-test", answers="garbage\n\nno limit\nno\n")
    assert code == 0, err
    assert "garbage: no such model" in err
    assert written(config) == {"model": "scripted:expert"}
    config.write_text("local_only = true")
    code, _, err = init(capsys, monkeypatch, "--force", "--yes", "--no-test", "--model", "openai:m")
    assert (code, "--any-model allows it" in err, config.read_text()) == (2, True, "local_only = true")


def test_a_model_that_cannot_be_reached_is_said(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaServer() as server:
        gone = f"ollama:tiny@{server.url}"
    words = ("--model", gone, "--max-tokens", "10", "--any-model")
    code, _, err = init(capsys, monkeypatch, *words, answers="no\n")
    assert (code, config.exists()) == (2, False)
    assert "cannot be reached" in err
    code, out, _ = init(capsys, monkeypatch, *words, "--yes", "--json")
    answer = json.loads(out.splitlines()[-1])
    assert (code, answer["usable"], "cannot be reached" in answer["problem"]) == (3, False, True)
    assert written(config)["model"] == gone


def test_an_interrupt_leaves_nothing(config: Path) -> None:
    words = [sys.executable, GAMETAPE, "init", "--model", "scripted:expert"]
    asked = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
    assert asked.stderr
    while b"goal use" not in (said := asked.stderr.peek()):
        assert asked.poll() is None, said
    asked.send_signal(signal.SIGINT)
    _, err = asked.communicate(timeout=60)
    assert (asked.returncode, b"Traceback" in err) == (130, False)
    assert not config.parent.parent.exists()
