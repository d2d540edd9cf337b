"""Finds out, by a few requests, what a server can do."""

from dataclasses import dataclass
from typing import Any, cast

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest
from gametape.engines.chat_formats.chat_template import read_turn_frame
from gametape.engines.chat_formats.fenced import FencedChatFormat
from gametape.engines.chat_formats.native import NativeChatFormat, detect_tool_call_format
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.egress_policy import EgressDenied
from gametape.engines.errors import EngineError
from gametape.engines.openai.client import ServerClient
from gametape.engines.openai.engine import ServerEngine
from gametape.engines.openai.server_tokenizer import (
    ServerChatTemplate,
    ServerTokenizer,
    TokenizerCache,
    TokenizerCacheMiss,
    TokenizerQuery,
)
from gametape.engines.prices import FREE

DEFAULT_WINDOW = 32768
"""The context length that is assumed where the server does not report one."""


@dataclass(frozen=True)
class TokenAPI:
    """The server takes and returns token ids. `exact_logprobs`: they are those of the distribution sampled from."""

    chat_format: ChatFormat
    tokenizer_cache: TokenizerCache
    window: int
    exact_logprobs: bool


@dataclass(frozen=True)
class MessageAPI:
    """The server takes messages only; `reason` says why token ids cannot be used."""

    window: int
    reason: str


async def probe_server(client: ServerClient, model: str) -> TokenAPI | MessageAPI:
    """Raises `EngineError` when the server does not answer: a temporary failure must not make a model untrainable."""
    try:
        return await _probe_tokens(client, model)
    except EgressDenied:
        raise
    except BadInput as error:
        reason = str(error)
    except EngineError as error:
        if error.kind not in {"refused", "garbled"}:
            raise
        reason = str(error)
    return MessageAPI(await _reported_window(client, model), reason)


async def _probe_tokens(client: ServerClient, model: str) -> TokenAPI:
    cache = TokenizerCache(model)
    probe = TokenizerQuery("plain", "a")
    await cache.fetch(client, probe)
    engine = ServerEngine(client, model, FREE)
    ids: list[int] = cache.get(probe)
    warm, cool = [await engine.top_logprob(ids, temperature) for temperature in (1.0, 0.5)]
    await engine.generate(GenerateRequest(request_id="probe", prompt_ids=ids, max_tokens=1))
    while True:
        try:
            chat_format = _chat_format(cache)
            break
        except TokenizerCacheMiss as miss:
            await cache.fetch(client, miss.query)
    cache.frozen = True
    return TokenAPI(chat_format, cache, cache.window or DEFAULT_WINDOW, abs(warm - cool) > 1e-6)


def _chat_format(cache: TokenizerCache) -> ChatFormat:
    """As for a model on disk, with the server's tokenizer and template in place of the files."""
    tokenizer, template = cast(Any, ServerTokenizer(cache)), cast(Any, ServerChatTemplate(cache))
    frame = read_turn_frame(template, tokenizer, ())
    form = detect_tool_call_format(template)
    return NativeChatFormat(tokenizer, frame, template, form) if form else FencedChatFormat(tokenizer, frame)


async def _reported_window(client: ServerClient, model: str) -> int:
    try:
        entries = (await client.get("/models")).get("data")
    except EngineError as error:
        if error.kind not in {"refused", "garbled"}:
            raise
        return DEFAULT_WINDOW
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model and isinstance(entry.get("max_model_len"), int):
            return max(1, int(entry["max_model_len"]))
    return DEFAULT_WINDOW
