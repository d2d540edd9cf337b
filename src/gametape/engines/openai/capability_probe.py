"""What a server can do, found out by asking it once."""

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
"""What is taken for the window of a model whose server does not tell."""


@dataclass(frozen=True)
class TokenAPI:
    """The server takes ids and gives ids: how its model is written to, and what its log-probabilities are of."""

    chat_format: ChatFormat
    tokenizer_cache: TokenizerCache
    window: int
    exact_logprobs: bool


@dataclass(frozen=True)
class MessageAPI:
    """The server takes messages only; `why` it cannot be spoken to in ids."""

    window: int
    reason: str


async def probe_server(client: ServerClient, model: str) -> TokenAPI | MessageAPI:
    """Raises `EngineError` when the server cannot be asked: a passing failure must not make a model untrainable."""
    try:
        return await _in_tokens(client, model)
    except EgressDenied:
        raise
    except BadInput as error:
        why = str(error)
    except EngineError as trouble:
        if trouble.kind not in {"refused", "garbled"}:
            raise
        why = str(trouble)
    return MessageAPI(await _told_window(client, model), why)


async def _in_tokens(client: ServerClient, model: str) -> TokenAPI:
    lexicon = TokenizerCache(model)
    probe = TokenizerQuery("plain", "a")
    await lexicon.fetch(client, probe)
    engine = ServerEngine(client, model, FREE)
    ids: list[int] = lexicon.get(probe)
    warm, cool = [await engine.top_logprob(ids, temperature) for temperature in (1.0, 0.5)]
    await engine.generate(GenerateRequest(request_id="probe", prompt_ids=ids, max_tokens=1))
    while True:
        try:
            dialect = _dialect(lexicon)
            break
        except TokenizerCacheMiss as gap:
            await lexicon.fetch(client, gap.query)
    lexicon.frozen = True
    return TokenAPI(dialect, lexicon, lexicon.window or DEFAULT_WINDOW, abs(warm - cool) > 1e-6)


def _dialect(lexicon: TokenizerCache) -> ChatFormat:
    """As for a model on disk; the server's tokenizer and template take the place of the files."""
    tokenizer, template = cast(Any, ServerTokenizer(lexicon)), cast(Any, ServerChatTemplate(lexicon))
    frame = read_turn_frame(template, tokenizer, ())
    form = detect_tool_call_format(template)
    return NativeChatFormat(tokenizer, frame, template, form) if form else FencedChatFormat(tokenizer, frame)


async def _told_window(client: ServerClient, model: str) -> int:
    try:
        entries = (await client.get("/models")).get("data")
    except EngineError as trouble:
        if trouble.kind not in {"refused", "garbled"}:
            raise
        return DEFAULT_WINDOW
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model and isinstance(entry.get("max_model_len"), int):
            return max(1, int(entry["max_model_len"]))
    return DEFAULT_WINDOW
