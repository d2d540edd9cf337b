"""The engine of a server that takes token ids and returns the ids it sampled, with their log-probabilities."""

import math
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gametape.core.errors import MissingDependency
from gametape.core.messages import GenerateRequest, Generation, TokenUsage, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.errors import EngineError, EngineErrorKind
from gametape.engines.openai.usage import parse_usage
from gametape.engines.prices import Price
from gametape.engines.server.client import ServerClient
from gametape.engines.server.wire_values import UNREADABLE, read_text

_PROBE_GRAMMAR = 'root ::= "ab"'


@dataclass
class _Completion:
    """What has been received so far."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text_pieces: list[str] = field(default_factory=list)
    top_first: float | None = None
    """The highest log-probability of a first token, where it was requested."""
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)


class ServerEngine(PolicyEngine):
    """Tokens from a server. Its weights are its own: they have one version here, and cannot be changed from here."""

    def __init__(self, client: ServerClient, model: str, price: Price) -> None:
        self._client = client
        self._model = model
        self._price = price
        self._supports_grammars: bool | None = None

    async def generate(self, request: GenerateRequest) -> Generation:
        if request.min_policy_version > 0:
            raise EngineError("refused", f"{self._client.server} has no weights of version 1 or newer")
        began = time.monotonic()
        constrained = request.grammar is not None and await self._check_grammars(request)
        sampled = await self._sample(_body(self._model, request, request.grammar if constrained else None))
        counted = TokenUsage(prompt_tokens=len(request.prompt_ids), completion_tokens=len(sampled.ids))
        finish = sampled.finish
        if finish not in {"stop", "length"}:
            said = self._client.hide_key(str(finish))[:40]
            self._raise_error("server_error", f"gave up on its answer ({said!r})", sampled)
        return Generation(
            request_id=request.request_id,
            completion_ids=sampled.ids,
            logprobs=sampled.logprobs,
            policy_versions=[0] * len(sampled.ids),
            finish="stop" if finish == "stop" else "length",
            usage=parse_usage(sampled.usage, counted, self._price, time.monotonic() - began),
            constrained=constrained,
        )

    async def update_weights(self, update: WeightUpdate) -> None:
        raise MissingDependency(
            f"{self._client.server} keeps its own weights: version {update.policy_version} cannot be loaded"
        )

    async def policy_version(self) -> int:
        return 0

    async def top_logprob(self, prompt_ids: list[int], temperature: float) -> float:
        """The highest log-probability of a next token, as the server reports it at this temperature."""
        request = GenerateRequest(request_id="probe", prompt_ids=prompt_ids, max_tokens=1)
        sampled = await self._sample(_body(self._model, request, None) | {"temperature": temperature, "logprobs": 1})
        if sampled.top_first is None:
            self._raise_error("garbled", "does not report the likeliest tokens", sampled)
        return sampled.top_first

    async def _check_grammars(self, request: GenerateRequest) -> bool:
        """Tried once, because many servers silently ignore fields that they do not know."""
        if self._supports_grammars is None:
            probe = GenerateRequest(request_id="probe", prompt_ids=request.prompt_ids[-16:], max_tokens=4)
            try:
                sampled = await self._sample(_body(self._model, probe, _PROBE_GRAMMAR))
            except EngineError as error:
                if error.retryable and error.kind != "server_error":
                    raise
                self._supports_grammars = False
            else:
                self._supports_grammars = "".join(sampled.text_pieces).startswith("ab")
        return self._supports_grammars

    async def _sample(self, body: dict[str, Any]) -> _Completion:
        sampled, most = _Completion(), int(body["max_tokens"])
        async with aclosing(self._client.events("/completions", body, lambda: len(sampled.ids))) as events:
            async for event in events:
                try:
                    _add_event(sampled, event, body["prompt"])
                except UNREADABLE as error:
                    self._raise_error(
                        "garbled", "sends an event that is no part of a completion in tokens", sampled, error
                    )
                if len(sampled.ids) > most:
                    self._raise_error("garbled", f"does not stop after the {most} tokens it was asked for", sampled)
        if sampled.finish is None:
            self._raise_error("cut_stream", "ended its answer without finishing it", sampled)
        if not sampled.ids:
            self._raise_error("garbled", "finished without a single token", sampled)
        return sampled

    def _raise_error(
        self, kind: EngineErrorKind, what: str, sampled: _Completion, cause: Exception | None = None
    ) -> NoReturn:
        raise EngineError(kind, f"{self._client.server} {what}", wasted_tokens=len(sampled.ids)) from cause


def _body(model: str, request: GenerateRequest, grammar: str | None) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "prompt": request.prompt_ids,
        "max_tokens": request.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": sampling.seed,
        "stop_token_ids": request.stop_ids,
        "skip_special_tokens": False,
        "logprobs": 0,
        "return_token_ids": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return body if grammar is None else body | {"structured_outputs": {"grammar": grammar}}


def _add_event(sampled: _Completion, event: dict[str, Any], prompt: list[int]) -> None:
    if isinstance(event.get("usage"), dict):
        sampled.usage = event["usage"]
    for choice in event.get("choices") or []:
        read = choice.get("prompt_token_ids")
        if read is not None and read != prompt:
            raise ValueError("the server read other tokens than it was given")
        ids = choice.get("token_ids") or []
        scores = choice.get("logprobs") or {}
        logprobs = scores.get("token_logprobs") or []
        if sampled.top_first is None and scores.get("top_logprobs") and scores["top_logprobs"][0]:
            sampled.top_first = max(_logprob(value) for value in scores["top_logprobs"][0].values())
        if len(ids) != len(logprobs):
            raise ValueError("ids and log-probabilities do not go together")
        sampled.ids += [_id(value) for value in ids]
        sampled.logprobs += [_logprob(value) for value in logprobs]
        sampled.text_pieces.append(read_text(choice.get("text")))
        if choice.get("finish_reason") is not None:
            sampled.finish = str(choice["finish_reason"])


def _id(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError("no token id")
    return value


def _logprob(value: object) -> float:
    """At most 0; the rounding of a certain token may say a little more."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value > 1e-3:
        raise ValueError("no log-probability")
    return min(0.0, float(value))
