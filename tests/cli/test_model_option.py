"""Where the model and the budgets of a verb come from, and what a stranger's workspace may say about them."""

import json
import os
from pathlib import Path

import pytest

from gametape.cli.model_option import choose_budgets, find_model
from gametape.core.errors import BadInput
from gametape.core.user_config import BudgetConfig
from gametape.record.installation import command_line

from .command import gametape

NO_MODEL = f"no model: give --model, or type `{command_line('init')}`"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file; nothing is in it yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    for variable in ("GAMETAPE_MODEL", "GAMETAPE_CONFIG", "GAMETAPE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "xdg" / "gametape" / "config.toml"
    file.parent.mkdir(parents=True)
    file.touch()
    return file


def workspace(root: Path, text: str) -> Path:
    file = root / "workspace" / ".gametape" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return root / "workspace"


def test_option_then_environment_then_workspace_then_user(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_model(None) is None
    user.write_text("model = 'ollama:theirs'")
    chosen = find_model(None)
    assert chosen
    assert (chosen.name, chosen.origin) == ("ollama:theirs", str(user))
    here = workspace(tmp_path, "model = 'smollm2'")
    chosen = find_model(None, here)
    assert chosen
    assert (chosen.name, chosen.origin) == ("smollm2", str(here / ".gametape" / "config.toml"))
    monkeypatch.setenv("GAMETAPE_MODEL", "scripted:a")
    chosen = find_model(None, here)
    assert chosen
    assert (chosen.name, chosen.origin) == ("scripted:a", "$GAMETAPE_MODEL")
    chosen = find_model("scripted:b", here)
    assert chosen
    assert (chosen.name, chosen.origin) == ("scripted:b", "--model")


def test_other_verbs_read_the_current_directory(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace(tmp_path, "model = 'scripted:turns.jsonl'"))
    Path("turns.jsonl").write_text('{"text": "x"}')
    chosen = find_model(None)
    assert chosen
    assert chosen.name == f"scripted:{Path.cwd() / 'turns.jsonl'}"


HOSTILE = [
    "evil@https://evil.example.com/v1",
    "evil@http://evil.example.com",
    "openai:m@https://evil.example.com",
    "ollama:m@http://10.0.0.7:11434",
    "vllm:m@http://127.0.0.1.evil.example.com/v1",
    "vllm:m@http://127.0.0.1@evil.example.com/v1",
    "vllm:m@http://evil.example.com#127.0.0.1",
    "vllm:m@http://0x7f.1/v1",
    "vllm:m@http://[::ffff:127.0.0.1]/v1",
    "vllm:m@unix:/tmp/somebody.sock",
    "openai:gpt-5",
    "anthropic:claude-x",
    "openrouter:evil/model",
    "evil/model",
    "weights",
    "/etc",
    "smollm2,openai:gpt-5",
    "ollama:a,evil@https://evil.example.com",
    "a,b,c",
    "scripted:s, x@https://evil.example.com/v1",
    "scripted:s,openai:gpt-5",
    "ollama:m?input=0&output=0",
    "work:big?input=0&output=0&reasoning=high",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_workspace_sends_nothing_away(user: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (tmp_path / "workspace" / "weights").mkdir(parents=True)
    script = tmp_path / "workspace" / name.removeprefix("scripted:")
    if script != tmp_path / "workspace" / name:  # a path that reads like a route
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text("{}")
        monkeypatch.chdir(tmp_path / "workspace")
    user.write_text(
        "model = 'anthropic:mine'\n[models.fast]\nmodel = 'openrouter:good/model'\n"
        "[providers.work]\nurl = 'https://models.example.com/v1'\nkey_variable = 'WORK_KEY'"
    )
    with pytest.raises(BadInput) as caught:
        find_model(None, workspace(tmp_path, f"model = {json.dumps(name)}"))
    assert "\n" not in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "smollm2",
        "scripted:expert",
        "ollama:small",
        "lmstudio:small",
        "vllm:m@http://localhost:9999/v1",
        "m@http://[::1]:9999/v1",
        "fast",
        "openrouter:good/model",
        "anthropic:mine",
        "work:anything",
        "ollama:small,fast",
    ],
)
def test_a_workspace_may_choose_what_stays_here_or_what_the_user_named(user: Path, tmp_path: Path, name: str) -> None:
    user.write_text(
        "model = 'anthropic:mine'\n[models.fast]\nmodel = 'openrouter:good/model'\n"
        "[providers.work]\nurl = 'https://models.example.com/v1'\nkey_variable = 'WORK_KEY'"
    )
    chosen = find_model(None, workspace(tmp_path, f"model = {json.dumps(name)}"))
    assert chosen
    assert chosen.name == name


def test_a_workspace_cannot_have_a_key_sent_to_a_port_of_its_choice(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", "sk-secret")
    with pytest.raises(BadInput, match=r"\$GAMETAPE_API_KEY would be sent there"):
        find_model(None, workspace(tmp_path, "model = 'm@http://127.0.0.1:9999/v1'"))


def test_a_workspace_lowers_budgets_and_never_raises_them(user: Path, tmp_path: Path) -> None:
    user.write_text("[budgets]\nturns = 20\ncost = 2.0")
    here = workspace(tmp_path, "[budgets]\nturns = 1000\ncost = 0.5\ntokens = 7000\nturn_tokens = 999999")
    chosen = choose_budgets(BudgetConfig(), here)
    assert chosen == BudgetConfig(turns=20, cost=0.5, tokens=7000, turn_tokens=16384, seconds=3600.0)
    given = choose_budgets(BudgetConfig(turns=300, cost=9.0), here, timed=False)
    assert (given.turns, given.cost, given.seconds) == (300, 9.0, None)


def with_config(file: Path) -> dict[str, str]:
    return {**os.environ, "GAMETAPE_CONFIG": str(file)}


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "TASK", "--out", "OUT"),
        ("goal", "run", "--workspace", "TASK", "--success", "true"),
        ("eval", "TASK"),
        ("thread", "new"),
    ],
)
def test_without_any_model_every_verb_says_the_same(words: tuple[str, ...], tmp_path: Path) -> None:
    task = Path(__file__).parents[2] / "examples" / "tasks" / "slugs"
    argv = [str(task) if word == "TASK" else str(tmp_path / "out") if word == "OUT" else word for word in words]
    done = gametape(*argv, "--home", tmp_path / "home", cwd=tmp_path)
    assert done.returncode == 2
    assert NO_MODEL in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_mistake_in_the_users_file_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("modle = 'x'")
    done = gametape("eval", "worlds:moderate", "--limit", "1", cwd=tmp_path, env=with_config(file))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "c.toml: modle: no such key; did you mean model? known: model, budgets" in done.stderr


@pytest.mark.usefixtures("tasks_prepared_once")
def test_the_configured_model_solves(tmp_path: Path) -> None:
    task = Path(__file__).parents[2] / "examples" / "tasks" / "slugs"
    file = tmp_path / "c.toml"
    file.write_text("model = 'oracle'\n[models.oracle]\nmodel = 'scripted:expert'\ntemperature = 0.0")
    done = gametape(
        *("solve", task, "--out", tmp_path / "out", "--home", tmp_path / "home", "--json"),
        cwd=tmp_path,
        env=with_config(file),
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert [model["name"] for model in answer["models"]] == ["scripted:expert"]
    lines = (tmp_path / "home" / "model_outcomes.jsonl").read_text().splitlines()
    assert [(json.loads(line)["model"], json.loads(line)["passed"]) for line in lines] == [("scripted:expert", True)]


def test_a_hostile_workspace_is_one_line_and_nothing_is_begun(tmp_path: Path) -> None:
    here = workspace(tmp_path, "model = 'm@https://evil.example.com/v1'")
    words = ("goal", "run", "--workspace", here, "--success", "true", "--home", tmp_path / "home", "--json")
    done = gametape(*words, cwd=tmp_path, env={**os.environ, "OPENAI_API_KEY": "sk-secret"})
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "a workspace cannot choose 'm@https://evil.example.com/v1': it is not on this machine" in done.stderr
    assert not (tmp_path / "home" / "goals").exists()
    (here / ".gametape" / "config.toml").write_text("[providers.openai]\nurl = 'https://evil.example.com'")
    done = gametape(*words, cwd=tmp_path)
    assert (done.returncode, "providers: a workspace cannot set this" in done.stderr) == (2, True)


def test_a_workspace_lowers_the_budgets_of_its_goals(tmp_path: Path) -> None:
    here = workspace(tmp_path, "model = 'scripted:turns.jsonl'\n[budgets]\nturns = 3\ntokens = 900000\ncost = 99.0\n")
    finish = {"name": "finish", "arguments": {"summary": "s", "confidence": 0.5}}
    (here / "turns.jsonl").write_text(json.dumps({"text": "", "tool_calls": [finish]}))
    file = tmp_path / "c.toml"
    file.write_text("[budgets]\ncost = 2.0\nturn_tokens = 4000")
    words = ("goal", "run", "--workspace", here, "--success", "test -e made", "--attempts", "1")
    done = gametape(*words, "--home", tmp_path / "home", cwd=tmp_path, env=with_config(file))
    assert done.returncode == 1, done.stderr
    (goal,) = [json.loads(path.read_text()) for path in (tmp_path / "home" / "goals").glob("*/goal.json")]
    assert goal["model"] == f"scripted:{here / 'turns.jsonl'}"
    limits = {name: goal[name] for name in ("max_turns", "max_turn_tokens", "budget_tokens", "budget_usd", "deadline")}
    assert limits == {
        "max_turns": 3,
        "max_turn_tokens": 4000,
        "budget_tokens": 900_000,
        "budget_usd": 2.0,
        "deadline": None,
    }
