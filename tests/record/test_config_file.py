"""The configuration files: what they may hold, and one line for every mistake in them."""

import os
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.user_config import BudgetConfig, UserConfig, WorkspaceConfig
from gametape.record.config_file import (
    MAX_BYTES,
    parse_config,
    read_user_config,
    read_workspace_config,
    user_config_file,
)

WHOLE = """
model = "fast"
local_only = true
[budgets]
turns = 20
turn_tokens = 16000
tokens = 2000000
cost = 5
seconds = 600.5
[models.fast]
model = "work:small"
window = 64000
price = { input = 1, output = 3.5, cached = 0.1 }
reasoning = "low"
temperature = 0.2
[providers.work]
url = "https://models.example.com/v1"
protocol = "openai"
key_variable = "WORK_KEY"
window = 32000
"""


@pytest.fixture(autouse=True)
def _no_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GAMETAPE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))


def parsed(text: str) -> UserConfig:
    return parse_config(text.encode(), Path("/c.toml"), UserConfig)


def refusal(text: str, kind: type[WorkspaceConfig] = UserConfig) -> str:
    with pytest.raises(BadInput) as caught:
        parse_config(text.encode(), Path("/c.toml"), kind)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("/c.toml: ")
    return message


def test_a_whole_file() -> None:
    config = parsed(WHOLE)
    assert config.model == "fast"
    assert config.budgets == BudgetConfig(turns=20, turn_tokens=16000, tokens=2_000_000, cost=5, seconds=600.5)
    assert config.models["fast"].price is not None
    assert config.models["fast"].price.cached == 0.1
    assert config.providers["work"].key_variable == "WORK_KEY"


def test_nothing_is_a_configuration_too() -> None:
    assert parsed("") == UserConfig()
    assert read_user_config() == UserConfig()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("modle = 'x'", ["modle: no such key", "did you mean model?", "known: model, budgets"]),
        ("[budgets]\nturn = 3", ["budgets.turn: no such key", "did you mean turns?", "turn_tokens"]),
        ("[models.a]\nmodel='x'\nwindw=3", ["models.a.windw", "did you mean window?"]),
        ("[models.a]\nmodel='x'\nprice={inputs=3}", ["models.a.price.inputs", "did you mean input?", "cached"]),
        ("[providers.a]\nurl='x'\nkey='sk-1'", ["providers.a.key: no such key", "key_variable"]),
        ("zzz = 1", ["zzz: no such key; known:"]),
        ("model = 3", ["model: expected a valid string"]),
        ("model = ''", ["model: expected one line"]),
        ('model = "a\\nb"', ["model: expected one line"]),
        ('model = "a\\u001b[2Jb"', ["model: expected one line"]),
        ("[budgets]\nturns = '3'", ["budgets.turns: expected a valid integer"]),
        ("[budgets]\nturns = true", ["budgets.turns"]),
        ("[budgets]\ncost = -1", ["budgets.cost"]),
        ("[budgets]\ncost = nan", ["budgets.cost"]),
        ("[budgets]\nseconds = inf", ["budgets.seconds"]),
        ("[models.a]\nwindow = 3", ["models.a.model: expected a value"]),
        ("[models.'a b']\nmodel = 'x'", ["models"]),
        ("[models.'a,b']\nmodel = 'x'", ["models"]),
        ("[providers.a]\nurl = 'x'\nkey_variable = 'sk-abc'", ["providers.a.key_variable", "never a key itself"]),
        ("[providers.a]\nurl = 'x'\nprotocol = 'grpc'", ["providers.a.protocol: expected 'openai'"]),
        ("budgets = 3", ["budgets: expected"]),
        ("model = ", ["not TOML"]),
        ("a = " + "[" * 5000, ["not TOML"]),
    ],
)
def test_a_mistake_is_one_line(text: str, parts: list[str]) -> None:
    message = refusal(text)
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize("text", ["[providers.x]\nurl='http://h'", "[models.x]\nmodel='m'", "local_only = false"])
def test_a_workspace_defines_nothing(text: str) -> None:
    assert "a workspace cannot set this" in refusal(text, WorkspaceConfig)


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert user_config_file() == tmp_path / "xdg" / "gametape" / "config.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # the specification says to ignore it
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_config_file() == tmp_path / ".config" / "gametape" / "config.toml"
    monkeypatch.setenv("GAMETAPE_CONFIG", str(tmp_path / "own.toml"))
    with pytest.raises(BadInput, match=r"own.toml: no such file, but \$GAMETAPE_CONFIG names it"):
        read_user_config()
    (tmp_path / "own.toml").write_text("model = 'm'")
    assert read_user_config().model == "m"


def make_directory(file: Path) -> None:
    file.mkdir()


def make_huge(file: Path) -> None:
    file.write_bytes(b"#" * (MAX_BYTES + 1))


def make_binary(file: Path) -> None:
    file.write_bytes(b"\x80\x00\xff")


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


def make_loop(file: Path) -> None:
    file.symlink_to(file)


MAKERS = [make_directory, make_huge, make_binary, make_pipe, make_loop]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("whose", ["user", "workspace"])
def test_what_is_no_short_text_file_is_one_line(make: object, whose: str, tmp_path: Path) -> None:
    file = user_config_file() if whose == "user" else tmp_path / "w" / ".gametape" / "config.toml"
    file.parent.mkdir(parents=True)
    make(file)  # type: ignore[operator]
    with pytest.raises(BadInput) as caught:
        read_user_config() if whose == "user" else read_workspace_config(tmp_path / "w")
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_one_line() -> None:
    user_config_file().parent.mkdir(parents=True)
    user_config_file().touch(0o000)
    with pytest.raises(BadInput, match="cannot be read"):
        read_user_config()


def test_the_user_may_link_to_the_file_a_workspace_may_not(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("model = 'm'")
    user_config_file().parent.mkdir(parents=True)
    user_config_file().symlink_to(real)
    assert read_user_config().model == "m"
    (tmp_path / "w" / ".gametape").mkdir(parents=True)
    (tmp_path / "w" / ".gametape" / "config.toml").symlink_to(real)
    with pytest.raises(BadInput, match="a symbolic link, which is not followed"):
        read_workspace_config(tmp_path / "w")
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / ".gametape").symlink_to(tmp_path / "w" / ".gametape")
    with pytest.raises(BadInput, match="a symbolic link, which is not followed"):
        read_workspace_config(tmp_path / "v")


def test_a_workspace_without_a_file_has_an_empty_one(tmp_path: Path) -> None:
    assert read_workspace_config(tmp_path) == WorkspaceConfig()
    assert read_workspace_config(tmp_path / "missing") == WorkspaceConfig()
    (tmp_path / ".gametape").write_text("a file")
    assert read_workspace_config(tmp_path) == WorkspaceConfig()
    (tmp_path / "w" / ".gametape").mkdir(parents=True)
    assert read_workspace_config(tmp_path / "w") == WorkspaceConfig()
