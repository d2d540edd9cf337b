"""`gametape models test NAME`: what a model can do, by real requests to scripted servers, and `gametape models`."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gametape.record.installation import command_line
from tests.cli.command import gametape, run
from tests.engines.ollama.server import OllamaServer, Status, Turn
from tests.engines.openai.server import FaultServer, Said
from tests.engines.openai.server import Status as HttpStatus

CALL = Turn(calls=[("look_up", {"key": "alpha"}), ("look_up", {"key": "beta"})])


def test_an_able_ollama_model(tmp_path: Path) -> None:
    with OllamaServer([Turn("ready", "hm"), CALL, Turn("17")], window=12345) as server:
        ran = run("models", "test", f"ollama:tiny@{server.url}", "--json", "--home", tmp_path)
        asked = len(server.chats)
    assert ran.code == 0, ran.err
    report = ran.answer
    assert (report["tools"], report["parallel_calls"], report["reasoning"], report["streaming"]) == (True,) * 4
    assert (report["tokens"], report["logprobs"], report["window"], report["local"]) == (False, False, 12345, True)
    assert report["prices"] == {"input": 0.0, "output": 0.0, "cached": None}
    assert report["requests"] == asked == 3
    assert report["tokens_spent"] > 0
    assert set(report["missing"]) == {"tokens", "logprobs", "caching"}


def test_reasoning_is_asked_for_where_it_is_not_shown_at_once(tmp_path: Path) -> None:
    with OllamaServer([Turn("ready"), CALL, Turn("17"), Turn("28", "8 times 3")]) as server:
        ran = run("models", "test", f"ollama:tiny@{server.url}", "--json", "--home", tmp_path)
        assert [chat.get("think") for chat in server.chats] == [None, None, None, "low", True]
    assert ran.answer["reasoning"] is True


def test_a_model_that_only_talks_is_not_usable(tmp_path: Path) -> None:
    with OllamaServer([Turn("I cannot do that.")], capabilities=("completion",)) as server:
        ran = run("models", "test", f"ollama:tiny@{server.url}", "--json", "--home", tmp_path)
        assert len(server.chats) <= 5
        table = run("models", "test", f"ollama:tiny@{server.url}", "--home", tmp_path)
    assert (ran.code, ran.answer["usable"], ran.answer["tools"]) == (1, False, False)
    assert "made none" in ran.answer["missing"]["tools"]
    assert "does not support it" in ran.answer["missing"]["reasoning"]
    assert any("takes no tools" in line for line in ran.answer["warnings"])
    assert (table.code, "an agent cannot work with it" in table.out) == (1, True)


def test_a_server_of_messages_and_one_of_tokens(tmp_path: Path) -> None:
    call = Said("", (("look_up", '{"key": "alpha"}'),))
    with FaultServer(["ready", call, "17", "28"]) as server:
        ran = run("models", "test", f"tiny@{server.url}", "--json", "--home", tmp_path)
    assert ran.code == 0, ran.err
    report = ran.answer
    assert (report["tokens"], report["tools"], report["parallel_calls"], report["reasoning"]) == (
        False,
        True,
        False,
        False,
    )
    assert report["missing"]["parallel_calls"] == "it was asked for two calls in a turn, and made one"
    fenced = '```tool\n{"name": "look_up", "arguments": {"key": "alpha"}}\n```<|im_end|>'
    with FaultServer(["ready<|im_end|>", fenced, "17<|im_end|>"], token_mode=True) as server:
        ran = run("models", "test", f"tiny@{server.url}", "--json", "--home", tmp_path)
    assert (ran.answer["tokens"], ran.answer["logprobs"], ran.answer["window"]) == (True, True, 4096), ran.err


def test_a_server_that_refuses_results_of_calls_is_not_usable(tmp_path: Path) -> None:
    call = Said("", (("look_up", '{"key": "alpha"}'),))
    refusal = HttpStatus(400, body='{"error": {"message": "role tool is not known"}}')
    with FaultServer(["ready", call, "17"], [None, None, refusal]) as server:
        ran = run("models", "test", f"tiny@{server.url}", "--json", "--home", tmp_path)
    assert (ran.code, "role tool is not known" in ran.answer["missing"]["tools"]) == (1, True)


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("", 2, "empty"),
        ("nonsense", 2, "no such model"),
        ("scripted:none.jsonl", 2, "no such script"),
        ("openai:m@ftp://x", 2, "expected a URL"),
        ("scripted:expert,scripted:cheat", 2, "test each"),
        ("openai:m", 3, "$OPENAI_API_KEY"),
        ("smollm2", 3, "models fetch smollm2"),
        ("m@http://192.0.2.1/v1", 3, "nothing may leave"),
    ],
)
def test_what_cannot_be_tested_is_one_line(tmp_path: Path, name: str, code: int, said: str) -> None:
    env = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    done = gametape("models", "test", name, "--local-only", "--home", tmp_path, "--json", env=env, cwd=tmp_path)
    if name == "openai:m":
        done = gametape("models", "test", name, "--home", tmp_path, "--json", env=env, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == code


def test_a_server_that_is_down_or_refuses_the_key(tmp_path: Path) -> None:
    with OllamaServer(faults=[Status(401, "unauthorized")]) as server:
        refused = run("models", "test", f"ollama:tiny@{server.url}", "--home", tmp_path)
        url = server.url
    assert (refused.code, "401" in refused.err) == (3, True)
    gone = run("models", "test", f"ollama:tiny@{url}", "--home", tmp_path)
    assert (gone.code, "cannot be reached" in gone.err) == (3, True)


def test_scripted_models_are_tested_too(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"text": "no"}\n{"text": "still no"}\n{"text": "never"}\n')
    assert run("models", "test", f"scripted:{tmp_path / 'talk.jsonl'}", "--home", tmp_path).code == 1
    report = run("models", "test", "scripted:expert", "--json", "--home", tmp_path).answer
    assert (report["usable"], report["tokens"], report["logprobs"], report["streaming"]) == (True, True, True, None)


def test_the_list_says_which_model_is_used_and_why(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        "model = 'fast'\n[models.fast]\nmodel = 'ollama:x'\n[providers.work]\nurl = 'https://w.example.com'\n"
    )
    env = {**os.environ, "GAMETAPE_CONFIG": str(file)}
    answer = json.loads(gametape("models", "--json", env=env, cwd=tmp_path).stdout)
    assert answer["default"] == {"name": "fast", "origin": str(file)}
    names = [row["name"] for row in answer["models"]]
    assert names[0] == "fast"
    assert "work:MODEL" in names
    shown = gametape("models", env={**env, "GAMETAPE_MODEL": "smollm2"}, cwd=tmp_path).stdout
    assert "without --model: smollm2, from $GAMETAPE_MODEL" in shown
    assert f"type `{command_line('init')}`" in gametape("models", cwd=tmp_path).stdout


def test_a_server_that_refuses_to_stream_is_said_to(tmp_path: Path) -> None:
    """It answers in one piece, as OpenAI's protocol has it without `stream`."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"key": "alpha"}'}}]
    messages = [{"content": "ready"}, {"content": "", "tool_calls": calls}, {"content": "17"}]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.endswith("/chat/completions"):
                self._answer(404, {"error": {"message": "no such path"}})
            elif body.get("stream"):
                self._answer(400, {"error": {"message": "stream is not supported here", "param": "stream"}})
            else:
                message = {"role": "assistant", **(messages.pop(0) if len(messages) > 1 else messages[0])}
                usage = {"prompt_tokens": 9, "completion_tokens": 3}
                finish = "tool_calls" if "tool_calls" in message else "stop"
                self._answer(
                    200, {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
                )

        def do_GET(self) -> None:
            self._answer(404, {"error": {"message": "no such path"}})

        def _answer(self, code: int, document: dict[str, object]) -> None:
            data = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        name = f"tiny@http://127.0.0.1:{server.server_address[1]}/v1"
        ran = run("models", "test", name, "--json", "--home", tmp_path)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert ran.code == 0, ran.err
    assert (ran.answer["streaming"], ran.answer["tools"]) == (False, True)
    assert "refuses" in ran.answer["missing"]["streaming"]
