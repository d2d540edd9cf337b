"""What a server can do, found out by asking it once."""

from dataclasses import dataclass
from typing import Any, cast

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest
from gametape.engines.dialect import Dialect
from gametape.engines.dialects.native import NativeDialect, format_of
from gametape.engines.dialects.plain import PlainDialect
from gametape.engines.dialects.template_frame import frame_of
from gametape.engines.openai.client import Client
from gametape.engines.openai.engine import ServerEngine
from gametape.engines.openai.lexicon import Lexicon, Question, ServerTemplate, ServerTokenizer, Unlearnt
from gametape.engines.perimeter import Outside
from gametape.engines.pricing import FREE
from gametape.engines.trouble import EngineTrouble

UNTOLD_WINDOW = 32768
"""What is taken for the window of a model whose server does not tell."""


@dataclass(frozen=True)
class InTokens:
    """The server takes ids and gives ids: how its model is written to, and what its log-probabilities are of."""

    dialect: Dialect
    lexicon: Lexicon
    window: int
    true_logprobs: bool


@dataclass(frozen=True)
class InMessages:
    """The server takes messages only; `why` it cannot be spoken to in ids."""

    window: int
    why: str


async def find_out(client: Client, model: str) -> InTokens | InMessages:
    """Raises `EngineTrouble` when the server cannot be asked: a passing failure must not make a model untrainable."""
    try:
        return await _in_tokens(client, model)
    except Outside:
        raise
    except BadInput as error:
        why = str(error)
    except EngineTrouble as trouble:
        if trouble.kind not in {"refused", "garbled"}:
            raise
        why = str(trouble)
    return InMessages(await _told_window(client, model), why)


async def _in_tokens(client: Client, model: str) -> InTokens:
    lexicon = Lexicon(model)
    probe = Question("plain", "a")
    await lexicon.learn(client, probe)
    engine = ServerEngine(client, model, FREE)
    ids: list[int] = lexicon.look_up(probe)
    warm, cool = [await engine.top_logprob(ids, temperature) for temperature in (1.0, 0.5)]
    await engine.generate(GenerateRequest(request_id="probe", prompt_ids=ids, max_tokens=1))
    while True:
        try:
            dialect = _dialect(lexicon)
            break
        except Unlearnt as gap:
            await lexicon.learn(client, gap.question)
    lexicon.sealed = True
    return InTokens(dialect, lexicon, lexicon.window or UNTOLD_WINDOW, abs(warm - cool) > 1e-6)


def _dialect(lexicon: Lexicon) -> Dialect:
    """As for a model on disk; the server's tokenizer and template take the place of the files."""
    tokenizer, template = cast(Any, ServerTokenizer(lexicon)), cast(Any, ServerTemplate(lexicon))
    frame = frame_of(template, tokenizer, ())
    form = format_of(template)
    return NativeDialect(tokenizer, frame, template, form) if form else PlainDialect(tokenizer, frame)


async def _told_window(client: Client, model: str) -> int:
    try:
        entries = (await client.get("/models")).get("data")
    except EngineTrouble as trouble:
        if trouble.kind not in {"refused", "garbled"}:
            raise
        return UNTOLD_WINDOW
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model and isinstance(entry.get("max_model_len"), int):
            return max(1, int(entry["max_model_len"]))
    return UNTOLD_WINDOW
