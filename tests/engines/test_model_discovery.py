"""What is found on this machine, and what a server there cannot make of it."""

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gametape.engines import providers
from gametape.engines.model_discovery import FoundModel, discover_models
from gametape.engines.providers import PROVIDERS, Provider
from tests.engines.ollama.server import OllamaServer
from tests.engines.openai.server import FaultServer


def test_servers_keys_and_weights_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "models" / "smollm2").mkdir(parents=True)
    with OllamaServer(model="qwen3:8b") as server:
        known = [Provider("cellar", "ollama", server.url), PROVIDERS["anthropic"], PROVIDERS["openai"]]
        found = discover_models(tmp_path, known)
    assert [model.name for model in found] == ["cellar:qwen3:8b", "anthropic:", "smollm2"]
    assert [model.is_whole for model in found] == [True, False, True]
    assert "sk-secret" not in str(found)
    assert discover_models(tmp_path / "other", [Provider("cellar", "ollama", server.url)]) == []


@pytest.mark.parametrize(
    "answer",
    [
        {
            "data": [
                {"id": "good/model-1"},
                {"id": "a,b"},
                {"id": "\x1b[2J"},
                {"id": "text-embed"},
                {"id": 3},
                "x",
                None,
            ]
        },
        {"data": [{"id": "good/model-1"}, {"id": "x" * 5000}, {"id": "m@http://evil"}]},
    ],
)
def test_odd_names_are_left_out(tmp_path: Path, answer: Any) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        found = discover_models(tmp_path, [Provider("rack", "openai", f"{url}/v1")])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found == [FoundModel("rack:good/model-1", f"answers at {url}")]


@pytest.mark.parametrize("answer", [[], {"models": 3}, {"models": {"a": 1}}, {}])
def test_other_answers_are_no_models(answer: Any) -> None:
    from gametape.engines.model_discovery import model_names_in

    assert model_names_in(answer if isinstance(answer, dict) else {}) == []


@pytest.mark.parametrize("name", ["lmstudio", "ollama"])
def test_whoever_listens_on_this_machine_is_sent_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable in ("MY_KEY", "OLLAMA_API_KEY", "LMSTUDIO_API_KEY", "VLLM_API_KEY", "GAMETAPE_API_KEY"):
        monkeypatch.setenv(variable, "sk-secret-of-the-user")
    with FaultServer() as server:
        own = replace(PROVIDERS[name], url=server.url)
        monkeypatch.setattr(providers, "PROVIDERS", {name: own})
        discover_models(tmp_path, [own, Provider("cellar", own.protocol, server.url, "MY_KEY")])
    assert len(server.seen) == 2
    assert all("sk-secret" not in str(seen) for seen in server.seen)


def test_nothing_but_this_machine_is_asked(tmp_path: Path) -> None:
    assert discover_models(tmp_path, [Provider("far", "openai", "http://192.0.2.1/v1")]) == []
