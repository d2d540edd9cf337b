"""What is learnt from a refusal, in the words of real servers."""

import asyncio
from typing import Any

import pytest

from gametape.engines.errors import EngineError
from gametape.engines.server.refusals import RefusedParameters

BODY: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "reasoning_content"},
        {"role": "assistant", "content": "", "reasoning_content": "hm"},
    ],
    "temperature": 0.3,
    "top_p": 0.9,
    "top_k": 40,
    "seed": 7,
    "max_tokens": 64_000,
    "stream_options": {"include_usage": True},
    "tool_choice": "required",
    "reasoning_effort": "high",
}


def refusal(detail: str, parameter: str | None = None, status: int | None = 400) -> EngineError:
    return EngineError("refused", f"http://seed.example answered: {detail}", None, 0, status, parameter, detail)


@pytest.mark.parametrize(
    ("detail", "parameter", "lost"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature", "temperature"),
        ("Unsupported value: 'temperature' does not support 0.3. Only the default (1) is.", None, "temperature"),
        ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", None, "top_p"),
        ("Unrecognized request argument supplied: top_k", None, "top_k"),
        ('[{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]', None, "stream_options"),
        ("property 'seed' is unsupported", None, "seed"),
        ("No endpoints found that support the provided 'tool_choice' value.", None, "tool_choice"),
        ("Unknown parameter: 'reasoning_effort'.", "reasoning_effort", "reasoning_effort"),
        ("Something is unsupported.", "body.top_k", "top_k"),
    ],
)
def test_a_parameter_that_is_left_out(detail: str, parameter: str | None, lost: str) -> None:
    refused = RefusedParameters()
    assert refused.learn(refusal(detail, parameter), BODY)
    shaped = refused.shape(BODY)
    assert set(BODY) - set(shaped) == {lost}
    assert list(refused.changes) == [lost]


@pytest.mark.parametrize(
    ("detail", "bound"),
    [
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-x-20251101", 8192),
        ("max_tokens is too large: 64000. This model supports at most 16384 completion tokens.", 16_384),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 32768]", 32_768),
        ("`max_tokens` must be less than or equal to `8,192`, the maximum value for this model", 8192),
    ],
)
def test_a_bound_that_is_lowered(detail: str, bound: int) -> None:
    refused = RefusedParameters()
    assert refused.learn(refusal(detail, "max_tokens"), BODY)
    assert refused.shape(BODY)["max_tokens"] == bound
    assert refused.shape({**BODY, "max_tokens": 200})["max_tokens"] == 200


def test_a_bound_that_is_renamed_and_lowered() -> None:
    refused = RefusedParameters()
    renamed = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    assert refused.learn(refusal(renamed, "max_tokens"), BODY)
    assert refused.learn(refusal("max_completion_tokens is too large: at most 4096"), refused.shape(BODY))
    assert refused.shape(BODY)["max_completion_tokens"] == 4096
    assert "max_tokens" not in refused.shape(BODY)
    assert not refused.learn(refusal(renamed, "max_tokens"), BODY)


def test_reasoning_in_messages() -> None:
    refused = RefusedParameters()
    assert refused.learn(refusal("reasoning_content should not be included in the input messages"), BODY)
    assert refused.shape(BODY)["messages"][1] == {"role": "assistant", "content": ""}
    assert "reasoning_content" in BODY["messages"][1]


@pytest.mark.parametrize(
    "error",
    [
        refusal("The model does not exist"),
        refusal("tools: too many"),
        refusal("Incorrect key; temperature", status=401),
        refusal("the word attempted_temperature_x is another"),
        EngineError("server_error", "temperature", status=500, detail="temperature"),
    ],
)
def test_nothing_to_learn(error: EngineError) -> None:
    refused = RefusedParameters()
    assert not refused.learn(error, BODY)
    assert refused.shape(BODY) == BODY


def test_a_server_that_refuses_whatever_it_is_sent_is_given_up() -> None:
    sent: list[dict[str, Any]] = []

    async def refuse(body: dict[str, Any]) -> None:
        sent.append(body)
        raise refusal("no " + " ".join([*body, "reasoning_content"]) + " at most 32000 300 200")

    with pytest.raises(EngineError):
        asyncio.run(RefusedParameters().send(BODY, refuse))
    assert len(sent) <= 13
    assert len({str(body) for body in sent}) == len(sent)
