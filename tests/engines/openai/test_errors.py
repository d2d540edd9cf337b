"""Every way in which a server can fail, for real, and what each is called. Nothing stays in the conversation."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gametape.core.errors import GametapeError
from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.openai import open_server_model
from gametape.engines.server.client import ServerLimits
from gametape.engines.server.errors import one_line, parse_retry_after
from tests.engines.openai.server import Cut, Drip, Endless, Fault, FaultServer, Hang, HugeHeaders, Raw, Status

BOUNDS = ServerLimits(answer_bytes=200_000, event_bytes=50_000)
SHORT = ServerLimits(idle_seconds=3.0, total_seconds=4.0, answer_bytes=200_000, event_bytes=50_000)
"""For servers that hang."""
TOO_LONG = '{"error": {"message": "This model\'s maximum context length is 4096 tokens. You asked for 9000."}}'

MATRIX: dict[str, tuple[Fault, str]] = {
    "429": (Status(429, {"retry-after": "7"}), "rate_limited"),
    "500": (Status(500), "server_error"),
    "502 with a page": (Status(502, body="<html>\x1b[31mbad gateway"), "server_error"),
    "503": (Status(503), "server_error"),
    "504": (Status(504), "timeout"),
    "529": (Status(529), "server_error"),
    "400": (Status(400), "refused"),
    "401": (Status(401), "refused"),
    "403": (Status(403), "refused"),
    "404": (Status(404, body=""), "refused"),
    "redirect": (Status(302, {"location": "http://127.0.0.1:1/"}), "refused"),
    "silence before the headers": (Hang(), "timeout"),
    "silence after the headers": (Hang(after_headers=True), "timeout"),
    "cut at once": (Cut(0), "cut_stream"),
    "cut in the middle": (Cut(2), "cut_stream"),
    "ended in the middle": (Cut(2, clean=True), "cut_stream"),
    "no JSON": (Raw(b"data: {nonsense\n\n"), "garbled"),
    "no object": (Raw(b"data: [1, 2]\n\n"), "garbled"),
    "another object": (Raw(b'data: {"choices": [{"delta": {"content": 7}, "token_ids": "x"}]}\n\n'), "garbled"),
    "no UTF-8": (Raw(b'data: {"choices": [{"text": "\xff\xfe"}]}\n\n'), "garbled"),
    "NaN": (Raw(b'data: {"choices": [{"logprobs": {"token_logprobs": [NaN]}}]}\n\n'), "garbled"),
    "depth": (Raw(b"data: " + b"[" * 20_000 + b"\n\n"), "garbled"),
    "an error in the stream": (Raw(b'data: {"error": {"message": "engine died"}}\n\n'), "server_error"),
    "done and nothing said": (Raw(b"data: [DONE]\n\n"), "cut_stream"),
    "endless tokens": (Endless(), "garbled"),
    "endless nothing": (Endless(b": keep-alive\n\n"), "garbled"),
    "endless line": (Endless(b"data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "garbled"),
    "dripping": (Drip(0.05), "timeout"),
    "huge headers": (HugeHeaders(), "garbled"),
}


@pytest.mark.parametrize("token_mode", [False, True], ids=["messages", "tokens"])
@pytest.mark.parametrize("case", MATRIX)
def test_what_a_fault_is_called(case: str, token_mode: bool) -> None:
    fault, kind = MATRIX[case]
    with FaultServer(["a reply that is long enough to be cut", "second"], [fault], token_mode) as server:
        hangs = isinstance(fault, (Hang, Drip))
        trouble, again = asyncio.run(_ask_twice(server, SHORT if hangs else BOUNDS))
    assert isinstance(trouble, EngineError)
    assert trouble.kind == kind
    assert "\x1b" not in str(trouble)
    assert len(str(trouble)) < 400
    assert "\n" not in str(trouble)
    assert again.startswith(("a reply", "second"))


@pytest.mark.parametrize("token_mode", [False, True], ids=["messages", "tokens"])
def test_a_window_that_is_full_is_told_apart(token_mode: bool) -> None:
    with FaultServer(["x"], [Status(400, body=TOO_LONG)], token_mode) as server:
        trouble, _ = asyncio.run(_ask_twice(server))
    assert isinstance(trouble, ContextTooLong)


@pytest.mark.parametrize("token_mode", [False, True], ids=["messages", "tokens"])
def test_tokens_of_a_cut_stream_are_counted(token_mode: bool) -> None:
    with FaultServer(["abcdefghijklmnop"], [Cut(4)], token_mode) as server:
        trouble, _ = asyncio.run(_ask_twice(server))
    assert isinstance(trouble, EngineError)
    assert trouble.wasted_tokens == (4 if token_mode else 3)


def test_a_server_that_is_not_there() -> None:
    with FaultServer() as server:
        url = server.url
    with pytest.raises(EngineError) as caught:
        open_server_model(f"openai:tiny@{url}", EgressPolicy())
    assert caught.value.kind == "unreachable"


def test_a_server_that_goes_away() -> None:
    with FaultServer() as server:
        model = open_server_model(f"openai:tiny@{server.url}", EgressPolicy())
    conversation = model.start_conversation(Sampling())
    conversation.begin("s", [], "u")
    with pytest.raises(EngineError) as caught:
        asyncio.run(conversation.ask(5))
    assert caught.value.kind == "unreachable"


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        (lambda: "12", 12, 12),
        (lambda: " 3.5 ", 3.5, 3.5),
        (lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True), 80, 91),
        (lambda: format_datetime(datetime.now(UTC) - timedelta(seconds=90), usegmt=True), 0, 0),
    ],
)
def test_retry_after(header: Callable[[], str], low: float, high: float) -> None:
    with FaultServer(faults=[Status(429, {"retry-after": header()})]) as server:
        trouble, _ = asyncio.run(_ask_twice(server))
    assert isinstance(trouble, EngineError)
    assert trouble.retry_after is not None
    assert low <= trouble.retry_after <= high


def test_milliseconds_are_more_exact_than_seconds() -> None:
    with FaultServer(faults=[Status(429, {"retry-after": "9", "retry-after-ms": "250"})]) as server:
        trouble, _ = asyncio.run(_ask_twice(server))
    assert isinstance(trouble, EngineError)
    assert trouble.retry_after == 0.25


@pytest.mark.parametrize("value", ["soon", "-1", "1e9", "٣", "nan", "Wed, 99 Nov 2999 99:99:99 GMT", "9" * 400])
def test_a_retry_after_that_says_nothing(value: str) -> None:
    assert parse_retry_after(value) is None


def test_a_server_s_words_become_one_short_clean_line() -> None:
    line = one_line("a\x00b\r\n\x1b]0;title\x07 \u202e c" + "d" * 500)
    assert line.isprintable()
    assert len(line) == 300


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", "sk-very-secret")
    echo = Status(401, body='{"error": {"message": "Incorrect API key provided: sk-very-secret"}}')
    with FaultServer(faults=[echo]) as server:
        trouble, _ = asyncio.run(_ask_twice(server))
        assert server.requests[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in str(trouble)
    assert "[key]" in str(trouble)


def test_no_key_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GAMETAPE_API_KEY", raising=False)
    with FaultServer(faults=[Status(500)]) as server:
        asyncio.run(_ask_twice(server))
        assert all("authorization" not in seen.headers for seen in server.seen)


async def _ask_twice(server: FaultServer, bounds: ServerLimits = BOUNDS) -> tuple[GametapeError, str]:
    """The first trouble, and the reply to the same question asked again: the trouble has left no trace."""
    model = open_server_model(f"openai:tiny@{server.url}/v1", EgressPolicy(), limits=bounds)
    try:
        conversation: Conversation = model.start_conversation(Sampling())
        conversation.begin("system", [], "user")
        with pytest.raises(GametapeError) as caught:
            await conversation.ask(60)
        reply = await conversation.ask(60)
        first, second = server.requests[:2]
        assert first.body == second.body
        return caught.value, reply.text
    finally:
        await model.close()
