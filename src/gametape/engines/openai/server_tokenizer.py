"""A server's tokenizer and chat template, through a cache of its answers.

Chat formats are synchronous, a server answers over a network. So what is not in the cache raises `TokenizerCacheMiss`;
the caller fetches it and tries again. Every answer comes from the server and is requested once.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeGuard

from gametape.engines.chat_formats.chat_template import TemplateRefusal
from gametape.engines.errors import EngineError
from gametape.engines.server.client import ServerClient
from gametape.engines.server.counts import plausible_count
from gametape.engines.tokenizers.text import replace_surrogates

_SPECIAL_FORM = re.compile(r"(?!<0x[0-9A-F]{2}>)<[^\s<>](?:.*[^\s])?>|\[/?[A-Za-z_]{2,}\]|>>.+<<", re.DOTALL)
"""The form of special tokens. Servers do not list theirs; an ordinary token of this form is only encoded in two parts.
`<0x0A>` is the name of a byte's token in many tokenizers, which is text."""
_MAX_PIECES = 64
_MAX_CACHED = 32 * 1024 * 1024


class TokenizerQuery(NamedTuple):
    """`plain` or `marked` text (with special tokens) to ids, ids to text (`decoded`), messages to text (`rendered`)."""

    kind: Literal["plain", "marked", "decoded", "rendered"]
    payload: str | tuple[int, ...]


class TokenizerCacheMiss(Exception):
    """The cache lacks the answer to this query: fetch it and try again."""

    def __init__(self, query: TokenizerQuery) -> None:
        super().__init__(query.kind)
        self.query = query


class TokenizerCache:
    """A server's answers about text and ids. `special_tokens` are those that its chat template writes.

    Once `frozen`, no text can add another: not even the description of a tool that the template renders.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._answers: dict[TokenizerQuery, Any] = {}
        self._size = 0
        self.special_tokens: dict[str, int] = {}
        self.frozen = False
        self.window: int | None = None

    def get(self, query: TokenizerQuery) -> Any:
        if query not in self._answers:
            raise TokenizerCacheMiss(query)
        return self._answers[query]

    async def fetch(self, client: ServerClient, query: TokenizerQuery) -> None:
        answer: Any
        match query:
            case TokenizerQuery("plain", str(text)):
                answer = await self._ids(client, text, allowed=frozenset())
            case TokenizerQuery("marked", str(text)):
                answer = await self._ids(client, text, allowed=frozenset(self.special_tokens) if self.frozen else None)
            case TokenizerQuery("rendered", str(document)):
                answer = await self._rendered(client, json.loads(document))
            case _:
                answer = await self._decoded(client, list(query.payload))
        self._size += len(query.payload) + len(answer)
        if self._size > _MAX_CACHED:
            self._answers.clear()
            self._size = len(query.payload) + len(answer)
        self._answers[query] = answer

    async def _ids(self, client: ServerClient, text: str, allowed: frozenset[str] | None) -> list[int]:
        """The ids of a text in which only `allowed` tokens are special (None: all, and they are recorded).

        Others are cut in two and tokenised apart; what a normaliser makes into one even so is left out.
        """
        if allowed is None:
            tokens = await self._tokens(client, text)
            self.special_tokens.update({string: token for token, string in tokens if _SPECIAL_FORM.fullmatch(string)})
            return [token for token, _ in tokens]
        cut: set[str] = set()
        while True:
            pieces = _pieces(text, cut)
            if len(set(pieces)) > _MAX_PIECES:
                text, cut = " ".join(pieces), set()
                continue
            by_piece = {piece: await self._tokens(client, piece) for piece in dict.fromkeys(pieces)}
            special = {s for tokens in by_piece.values() for _, s in tokens if _SPECIAL_FORM.fullmatch(s)} - allowed
            if special <= cut:
                return [token for piece in pieces for token, string in by_piece[piece] if string not in special]
            cut |= special

    async def _tokens(self, client: ServerClient, text: str) -> list[tuple[int, str]]:
        if not text:
            return []
        body = {"model": self._model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
        answer = await client.post("/tokenize", body, root=True)
        ids, strings = answer.get("tokens"), answer.get("token_strs")
        if not _are_ids(ids) or not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
            raise EngineError("garbled", f"{client.server} does not tokenise in ids and strings")
        self.window = plausible_count(answer.get("max_model_len"), 0) or self.window
        try:
            return list(zip(ids, strings, strict=True))
        except ValueError as error:
            raise EngineError("garbled", f"{client.server} tokenises into ids and strings that differ") from error

    async def _rendered(self, client: ServerClient, conversation: dict[str, Any]) -> str | TemplateRefusal:
        try:
            answer = await client.post("/tokenize", {"model": self._model, **conversation}, root=True)
        except EngineError as error:
            if error.kind != "refused":
                raise
            return _Refusal(str(error))
        if not _are_ids(answer.get("tokens")):
            raise EngineError("garbled", f"{client.server} does not tokenise conversations")
        return await self._decoded(client, answer["tokens"])

    async def _decoded(self, client: ServerClient, ids: list[Any]) -> str:
        if not ids:
            return ""
        answer = await client.post("/detokenize", {"model": self._model, "tokens": ids}, root=True)
        if not isinstance(answer.get("prompt"), str):
            raise EngineError("garbled", f"{client.server} does not turn ids into text")
        return replace_surrogates(answer["prompt"])


class _Refusal(TemplateRefusal):
    def __len__(self) -> int:
        return len(str(self))


class ServerTokenizer:
    """What chat formats use of `TrainedTokenizer`; every method may raise `TokenizerCacheMiss`."""

    def __init__(self, cache: TokenizerCache) -> None:
        self._cache = cache

    @property
    def special_tokens(self) -> dict[str, int]:
        return dict(self._cache.special_tokens)

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset(self._cache.special_tokens.values())

    def encode(self, text: str) -> list[int]:
        return list(self._cache.get(TokenizerQuery("plain", replace_surrogates(text))))

    def encode_with_special(self, text: str) -> list[int]:
        return list(self._cache.get(TokenizerQuery("marked", replace_surrogates(text))))

    def decode(self, ids: Sequence[int]) -> str:
        special = self.special_ids
        return str(self._cache.get(TokenizerQuery("decoded", tuple(i for i in ids if i not in special))))


class ServerChatTemplate:
    """What chat formats use of `ChatTemplate`; `render` may raise `TokenizerCacheMiss`."""

    def __init__(self, cache: TokenizerCache) -> None:
        self._cache = cache

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (), prompt: bool = True
    ) -> str:
        conversation: dict[str, Any] = {"messages": [_for_server(m) for m in messages], "add_generation_prompt": prompt}
        if tools:
            conversation["tools"] = [{"type": "function", "function": tool} for tool in tools]
        answer = self._cache.get(TokenizerQuery("rendered", json.dumps(conversation)))
        if isinstance(answer, TemplateRefusal):
            raise TemplateRefusal(str(answer))
        return str(answer)


def _for_server(message: dict[str, Any]) -> dict[str, Any]:
    """Templates take arguments as objects, servers take them as a JSON string."""
    calls = [
        call | {"function": call["function"] | {"arguments": json.dumps(call["function"]["arguments"])}}
        for call in message.get("tool_calls", [])
    ]
    return message | {"tool_calls": calls} if calls else message


def _pieces(text: str, cut: set[str]) -> list[str]:
    """The text, cut after the first character of each of these special tokens."""
    if not cut:
        return [text]
    anywhere = re.compile("(?=" + "|".join(re.escape(special) for special in sorted(cut)) + ")")
    at = [0, *(match.start() + 1 for match in anywhere.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


def _are_ids(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(token) is int and 0 <= token < 2**31 for token in value)
