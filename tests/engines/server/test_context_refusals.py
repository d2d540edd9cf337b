"""A request that does not fit into a server's window, in the words of many servers: ask for less, or compact."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.server.errors import raise_for_event, raise_for_status
from gametape.engines.server.keys import ServerKey
from gametape.engines.server.refusals import RefusedParameters

ASKED = 8192
LLAMA = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 8036, "n_ctx": 6500}
WORDINGS: dict[str, tuple[str | dict[str, Any], int | None, int]] = {
    "vLLM, bound": (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 9500 "
        "tokens and your request has 1585 input tokens (8192 > 9500 - 1585).",
        9500,
        7915,
    ),
    "vLLM, prompt": (
        "This model's maximum context length is 9500 tokens. However, your request has 9601 input tokens. Please "
        "reduce the length of the input messages.",
        9500,
        0,
    ),
    "vLLM, a prompt that was not counted to its end": (
        "This model's maximum context length is 9500 tokens. However, you requested 8192 output tokens and your prompt "
        "contains at least 1309 input tokens, for a total of at least 9501 tokens.",
        9500,
        4096,
    ),
    "vLLM, older": ("max_tokens must be at least 1, got -186.", None, 0),
    "vLLM, decoder": (
        "The decoder prompt (length 12000) is longer than the maximum model length of 8192.",
        8192,
        0,
    ),
    "OpenAI, bound": (
        "This model's maximum context length is 16000 tokens. However, you requested 17165 tokens (8973 in the "
        "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
        16_000,
        7027,
    ),
    "OpenAI, with functions": (
        "This model's maximum context length is 8192 tokens. However, you requested 9192 tokens (800 in the messages, "
        "200 in the functions, and 8192 in the completion).",
        8192,
        7192,
    ),
    "OpenAI, both": (
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (114754 in the "
        "messages, 8192 in the completion).",
        16_384,
        0,
    ),
    "OpenAI, no room for a turn": (
        "This model's maximum context length is 16384 tokens. However, you requested 24376 tokens (16184 in the "
        "messages, 8192 in the completion).",
        16_384,
        200,
    ),
    "OpenAI, prompt": (
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens.",
        4097,
        0,
    ),
    "OpenAI, no numbers": ({"message": "Too much of it.", "code": "context_length_exceeded"}, None, 0),
    "Groq": (
        {"message": "Please reduce the length of the messages or completion.", "code": "context_length_exceeded"},
        None,
        4096,
    ),
    "OpenRouter": (
        "This endpoint's maximum context length is 12,800 tokens. However, you requested about 16076 tokens (6884 of "
        "text input, 1000 of tool input, 8192 in the output). Please reduce the length of either one, or use the "
        '"middle-out" transform to compress your prompt automatically.',
        12_800,
        4716,
    ),
    "OpenRouter, its provider's": (
        {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {
                "raw": '{"message":"This model\'s maximum context length is 9500 tokens. However, you requested 10192 '
                'tokens (2000 in the messages, 8192 in the completion)."}'
            },
        },
        9500,
        7500,
    ),
    "Anthropic, bound": (
        "input length and `max_tokens` exceed context limit: 193959 + 8192 > 200000, decrease input length or "
        "`max_tokens` and try again",
        200_000,
        6041,
    ),
    "Anthropic, prompt": ("prompt is too long: 205310 tokens > 200000 maximum", 200_000, 0),
    "llama.cpp": (
        {
            "message": "request (8036 tokens) exceeds the available context size (6500 tokens), try increasing it",
            **LLAMA,
        },
        6500,
        0,
    ),
    "llama.cpp, fields": ({"message": "no", **LLAMA}, 6500, 0),
    "llama.cpp, older": (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
        0,
    ),
    "LM Studio": (
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context "
        "length of only 7866 tokens, which is not enough. Try to load the model with a larger context length.",
        7866,
        0,
    ),
    "LM Studio, newer": (
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= "
        "n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        4096,
        0,
    ),
    "LM Studio, engine": ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424, 0),
    "Ollama": ("the input length exceeds the context length", None, 0),
    "Mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32_768,
        0,
    ),
    "Gemini": (
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
        0,
    ),
    "SGLang": (
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of "
        "38192 tokens: 30000 tokens from the input messages and 8192 tokens for the completion.",
        32_768,
        2768,
    ),
    "TGI": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 9000. Given: 4000 `inputs` tokens and "
        "8192 `max_new_tokens`",
        9000,
        5000,
    ),
}


def body_of(said: str | dict[str, Any]) -> bytes:
    return json.dumps({"error": {"message": said} if isinstance(said, str) else said}).encode()


def refusal(said: str | dict[str, Any], status: int = 400) -> Exception:
    with pytest.raises((ContextTooLong, EngineError)) as caught:
        raise_for_status(status, httpx.Headers(), body_of(said), "http://127.0.0.1:9", ServerKey())
    return caught.value


@pytest.mark.parametrize("server", WORDINGS)
def test_the_window_and_the_room_that_a_server_states(server: str) -> None:
    said, window, room = WORDINGS[server]
    error = refusal(said)
    assert isinstance(error, ContextTooLong)
    assert (error.window, error.room(ASKED)) == (window, room)
    with pytest.raises(ContextTooLong):
        raise_for_event(body_of(said), "http://127.0.0.1:9", 0, ServerKey())


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-x", 400),
        ("max_tokens is too large: 64000. This model supports at most 16384 completion tokens.", 400),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", 400),
        ("Rate limit reached: 30000 input tokens per minute, context length 8192", 429),
        ("out of memory; lower the context length", 500),
    ],
)
def test_other_refusals_are_not_about_the_window(said: str, status: int) -> None:
    assert isinstance(refusal(said, status), EngineError)


def test_a_failure_that_states_both_numbers_is_about_the_window() -> None:
    said = "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens."
    assert isinstance(refusal(said, 502), ContextTooLong)


class StrictServer:
    """Takes what fits into its window, and counts what it is asked."""

    def __init__(self, window: int, prompt: int, says: str) -> None:
        self.window, self.prompt, self.says = window, prompt, says
        self.asked: list[int] = []

    async def __call__(self, body: dict[str, Any]) -> str:
        asked = int(body["max_tokens"])
        self.asked.append(asked)
        if self.prompt + asked <= self.window:
            return "answered"
        raise refusal(self.says.format(prompt=self.prompt, asked=asked, window=self.window))


def test_less_is_asked_for_and_the_window_is_remembered() -> None:
    vllm = StrictServer(9500, 1585, WORDINGS["vLLM, bound"][0].replace("8192", "{asked}"))  # type: ignore[union-attr]
    refused = RefusedParameters()
    assert refused.window_within(32_768) == 32_768
    assert asyncio.run(refused.send({"max_tokens": ASKED}, vllm)) == "answered"
    assert vllm.asked == [ASKED, 7915]
    assert refused.window_within(32_768) == 9500
    assert refused.window_within(4096) == 4096
    assert "9500" in refused.changes["window"]


def test_a_bound_that_is_not_stated_is_halved_until_it_fits() -> None:
    server = StrictServer(9500, 6000, "Please reduce the completion: the context window is too small for it.")
    assert asyncio.run(RefusedParameters().send({"max_tokens": ASKED}, server)) == "answered"
    assert server.asked == [8192, 4096, 2048]


def test_a_conversation_that_leaves_no_room_for_a_turn_is_too_long() -> None:
    server = StrictServer(9500, 9400, "context length: {prompt} + {asked} > {window}")
    refused = RefusedParameters()
    with pytest.raises(ContextTooLong):
        asyncio.run(refused.send({"max_tokens": ASKED}, server))
    assert server.asked == [ASKED]
    assert refused.window_within(32_768) == 9500
