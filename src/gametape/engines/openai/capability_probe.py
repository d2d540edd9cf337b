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
from gametape.engines.openai.engine import ServerEngine
from gametape.engines.openai.model_list import read_model_list
from gametape.engines.openai.server_tokenizer import (
    ServerChatTemplate,
    ServerTokenizer,
    TokenizerCache,
    TokenizerCacheMiss,
    TokenizerQuery,
)
from gametape.engines.prices import FREE, Price
from gametape.engines.server.address import ServerAddress
from gametape.engines.server.client import ServerClient
from gametape.engines.server.windows import usual_window


@dataclass(frozen=True)
class TokenAPI:
    """The server takes and returns token ids. `exact_logprobs`: they are those of the distribution sampled from."""

    chat_format: ChatFormat
    tokenizer_cache: TokenizerCache
    window: int
    exact_logprobs: bool


@dataclass(frozen=True)
class MessageAPI:
    """The server takes messages only; `reason` says why token ids cannot be used. `price` is what it reports."""

    window: int
    reason: str
    price: Price | None = None


async def probe_server(client: ServerClient, address: ServerAddress) -> TokenAPI | MessageAPI:
    """Raises `EngineError` when the server does not answer: a temporary failure must not make a model untrainable.

    A hosted provider is sent no trial: each would cost something, and none takes token ids.
    """
    provider = address.provider
    if not (provider.takes_tokens or (provider.name == "openai" and not address.own)):
        reported = await read_model_list(client, address)
        reason = f"{provider.name} takes messages only"
        return MessageAPI(reported.window or usual_window(address), reason, reported.price)
    try:
        return await _probe_tokens(client, address)
    except EgressDenied:
        raise
    except BadInput as error:
        reason = str(error)
    except EngineError as error:
        if error.kind not in {"refused", "garbled"}:
            raise
        reason = str(error)
    reported = await read_model_list(client, address)
    return MessageAPI(reported.window or usual_window(address), reason)


async def _probe_tokens(client: ServerClient, address: ServerAddress) -> TokenAPI:
    model = address.model
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
    return TokenAPI(chat_format, cache, cache.window or usual_window(address), abs(warm - cool) > 1e-6)


def _chat_format(cache: TokenizerCache) -> ChatFormat:
    """As for a model on disk, with the server's tokenizer and template in place of the files."""
    tokenizer, template = cast(Any, ServerTokenizer(cache)), cast(Any, ServerChatTemplate(cache))
    frame = read_turn_frame(template, tokenizer, ())
    form = detect_tool_call_format(template)
    return NativeChatFormat(tokenizer, frame, template, form) if form else FencedChatFormat(tokenizer, frame)
