"""A whole goal with a model of an Ollama server: streaming, thinking, several calls, refusals, a busy server."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Ran, gametape, run
from tests.desk.goals.shop import BY_EXIT_CODE, MENDED, lay
from tests.engines.ollama.server import Cut, OllamaServer, Status, Turn

WRITE = ("write", {"path": "shop.py", "content": MENDED})
FINISH = ("finish", {"summary": "mended", "confidence": 0.9})


def reach(tmp_path: Path, server: OllamaServer, options: str = "") -> Ran:
    workspace = lay(tmp_path / "workspace")
    model = f"ollama:tiny@{server.url}{options}"
    words = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE, "--model", model)
    return run(*words, "--home", tmp_path / "home", "--json")


def turns_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    steps = json.loads(Path(answer["trajectory"]).read_text())["steps"]
    return [step for step in steps if step["source"] == "agent"]


def test_a_goal_is_reached_through_every_turn_of_the_protocol(tmp_path: Path) -> None:
    turns = [
        Turn("I look.", "what is broken?", [("read", {"path": "shop.py"}), ("read", {"path": "tests/test_shop.py"})]),
        Turn("", "total adds one", [WRITE]),
        Turn("Done.", "", [FINISH], ids=True),
    ]
    busy = Status(503, headers={"retry-after": "0"})
    limited = Status(429, "too many requests", {"retry-after": "0"})
    with OllamaServer(turns, [None, busy, limited, None, Cut(0), None]) as server:
        ran = reach(tmp_path, server, "?reasoning=low")
        assert ran.code == 0, ran.err
        chats = server.chats
        assert set(server.paths) == {"/api/show", "/api/chat"}
    answer = ran.answer
    assert answer["reached"]
    assert [model["turns"] for model in answer["models"]] == [3]
    first, second, third = turns_of(answer)
    assert first["reasoning_content"] == "what is broken?"
    assert len(first["tool_calls"]) == len(first["observation"]["results"]) == 2
    assert second["metrics"]["extra"]["attempts"] == 3
    assert [event["kind"] for event in second["extra"]["gametape"]["events"]] == ["engine", "engine"]
    assert third["metrics"]["extra"]["attempts"] == 2
    assert [chat.get("think") for chat in chats[:2]] == ["low", True]  # this model has no levels, and says so
    assert all(chat["options"]["num_ctx"] >= 8192 for chat in chats)
    sent = chats[-1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert sent[2]["thinking"] == "what is broken?"
    assert "def total" in sent[3]["content"]


def test_a_model_without_tools_reaches_it_in_text(tmp_path: Path) -> None:
    def fenced(name: str, arguments: dict[str, Any]) -> Turn:
        return Turn(f"Now:\n```tool\n{json.dumps({'name': name, 'arguments': arguments})}\n```")

    with OllamaServer([fenced(*WRITE), fenced(*FINISH)], capabilities=("completion",)) as server:
        ran = reach(tmp_path, server)
    assert ran.code == 0, ran.err
    assert "takes no tools" in turns_of(ran.answer)[0]["extra"]["gametape"]["warnings"][0]


@pytest.mark.parametrize(
    ("name", "said", "code"),
    [("absent:7b", "ollama pull absent:7b", 3), ("tiny", "cannot be reached", 3)],
)
def test_what_is_missing_is_one_line_before_anything_is_spent(tmp_path: Path, name: str, said: str, code: int) -> None:
    with OllamaServer() as server:
        url = server.url
        if name == "absent:7b":
            ran = _attempted(tmp_path, f"ollama:{name}@{url}")
    if name == "tiny":
        ran = _attempted(tmp_path, f"ollama:{name}@{url}")
    assert ran.code == code
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "home" / "goals").exists()


def _attempted(tmp_path: Path, model: str) -> Ran:
    workspace = lay(tmp_path / "workspace")
    words = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE, "--model", model)
    return run(*words, "--home", tmp_path / "home")


def test_a_provider_of_ones_own_that_speaks_it(tmp_path: Path) -> None:
    """`[providers.NAME]` with a protocol, and an alias over it as the default model."""
    with OllamaServer([Turn("", calls=[WRITE]), Turn("", calls=[FINISH])]) as server:
        file = tmp_path / "config.toml"
        file.write_text(
            f"model = 'near'\n[providers.cellar]\nurl = '{server.url}'\nprotocol = 'ollama'\n"
            "[models.near]\nmodel = 'cellar:tiny'\nwindow = 20000\nreasoning = 'low'\ntemperature = 0.25\n"
        )
        workspace = lay(tmp_path / "workspace")
        aim = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE)
        words = (*aim, "--home", tmp_path / "home", "--json")
        done = gametape(*words, env={**os.environ, "GAMETAPE_CONFIG": str(file)})
        assert done.returncode == 0, done.stderr
        chats = server.chats
    answer = json.loads(done.stdout.splitlines()[-1])
    assert [model["name"] for model in answer["models"]] == ["cellar:tiny"]
    assert {chat["options"]["temperature"] for chat in chats} == {0.25}
    assert chats[0]["think"] == "low"
