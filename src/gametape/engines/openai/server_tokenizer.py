"""A server's tokenizer and chat template, as far as they were asked about.

Dialects read and write without waiting, a server answers over a network. So what is not known yet is raised
(`Unlearnt`), learnt, and looked up again: all that is written or read comes from the server, and is asked for once.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeGuard

from gametape.engines.chat_formats.chat_template import TemplateRefusal
from gametape.engines.errors import EngineError
from gametape.engines.openai.client import ServerClient
from gametape.engines.tokenizers.text import replace_surrogates

_MARKER = re.compile(r"(?!<0x[0-9A-F]{2}>)<[^\s<>](?:.*[^\s])?>|\[/?[A-Za-z_]{2,}\]|>>.+<<", re.DOTALL)
"""How special tokens look. Servers do not list theirs; ordinary tokens that look so are only written in two parts.
`<0x0A>` is how many tokenizers call the token of a byte, which is text."""
_MOST_PIECES = 64
_MOST_KEPT = 32 * 1024 * 1024


class TokenizerQuery(NamedTuple):
    """`plain` and `marked` text to ids, ids to text (`decoded`), a conversation to text (`rendered`)."""

    kind: Literal["plain", "marked", "decoded", "rendered"]
    payload: str | tuple[int, ...]


class TokenizerCacheMiss(Exception):
    """Ask the server this, then try again."""

    def __init__(self, query: TokenizerQuery) -> None:
        super().__init__(query.kind)
        self.query = query


class TokenizerCache:
    """What a server said about text and ids. `markers` are the special tokens in what its chat template writes.

    Once `sealed`, no text can bring in another: not even the description of a tool that a template writes for us.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._known: dict[TokenizerQuery, Any] = {}
        self._kept = 0
        self.special_tokens: dict[str, int] = {}
        self.frozen = False
        self.window: int | None = None

    def get(self, query: TokenizerQuery) -> Any:
        if query not in self._known:
            raise TokenizerCacheMiss(query)
        return self._known[query]

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
        self._kept += len(query.payload) + len(answer)
        if self._kept > _MOST_KEPT:
            self._known.clear()
            self._kept = len(query.payload) + len(answer)
        self._known[query] = answer

    async def _ids(self, client: ServerClient, text: str, allowed: frozenset[str] | None) -> list[int]:
        """The ids of a text in which only `allowed` markers are special (None: all, and they are taken note of).

        Others are cut in two and tokenised apart; what a normaliser makes into one even so is left out.
        """
        if allowed is None:
            found = await self._tokens(client, text)
            self.special_tokens.update({string: token for token, string in found if _MARKER.fullmatch(string)})
            return [token for token, _ in found]
        cut: set[str] = set()
        while True:
            pieces = _pieces(text, cut)
            if len(set(pieces)) > _MOST_PIECES:
                text, cut = " ".join(pieces), set()
                continue
            tokens = {piece: await self._tokens(client, piece) for piece in dict.fromkeys(pieces)}
            strange = {s for found in tokens.values() for _, s in found if _MARKER.fullmatch(s)} - allowed
            if strange <= cut:
                return [token for piece in pieces for token, string in tokens[piece] if string not in strange]
            cut |= strange

    async def _tokens(self, client: ServerClient, text: str) -> list[tuple[int, str]]:
        if not text:
            return []
        body = {"model": self._model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
        answer = await client.post("/tokenize", body, root=True)
        ids, strings = answer.get("tokens"), answer.get("token_strs")
        if not _are_ids(ids) or not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
            raise EngineError("garbled", f"{client.server} does not tokenise in ids and strings")
        self.window = answer["max_model_len"] if isinstance(answer.get("max_model_len"), int) else self.window
        try:
            return list(zip(ids, strings, strict=True))
        except ValueError as error:
            raise EngineError("garbled", f"{client.server} tokenises into ids and strings that differ") from error

    async def _rendered(self, client: ServerClient, conversation: dict[str, Any]) -> str | TemplateRefusal:
        try:
            answer = await client.post("/tokenize", {"model": self._model, **conversation}, root=True)
        except EngineError as trouble:
            if trouble.kind != "refused":
                raise
            return _Refusal(str(trouble))
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
    """See `Tokenizer`, and `TrainedTokenizer` for the rest; any of it may raise `Unlearnt`."""

    def __init__(self, cache: TokenizerCache) -> None:
        self._lexicon = cache

    @property
    def special_tokens(self) -> dict[str, int]:
        return dict(self._lexicon.special_tokens)

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset(self._lexicon.special_tokens.values())

    def encode(self, text: str) -> list[int]:
        return list(self._lexicon.get(TokenizerQuery("plain", replace_surrogates(text))))

    def encode_with_special(self, text: str) -> list[int]:
        return list(self._lexicon.get(TokenizerQuery("marked", replace_surrogates(text))))

    def decode(self, ids: Sequence[int]) -> str:
        special = self.special_ids
        return str(self._lexicon.get(TokenizerQuery("decoded", tuple(i for i in ids if i not in special))))


class ServerChatTemplate:
    """See `ChatTemplate`; rendering may raise `Unlearnt`."""

    def __init__(self, cache: TokenizerCache) -> None:
        self._lexicon = cache

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (), prompt: bool = True
    ) -> str:
        conversation: dict[str, Any] = {"messages": [_as_sent(m) for m in messages], "add_generation_prompt": prompt}
        if tools:
            conversation["tools"] = [{"type": "function", "function": tool} for tool in tools]
        answer = self._lexicon.get(TokenizerQuery("rendered", json.dumps(conversation)))
        if isinstance(answer, TemplateRefusal):
            raise TemplateRefusal(str(answer))
        return str(answer)


def _as_sent(message: dict[str, Any]) -> dict[str, Any]:
    """Templates take arguments as objects, servers take them as JSON in a string."""
    calls = [
        call | {"function": call["function"] | {"arguments": json.dumps(call["function"]["arguments"])}}
        for call in message.get("tool_calls", [])
    ]
    return message | {"tool_calls": calls} if calls else message


def _pieces(text: str, cut: set[str]) -> list[str]:
    """The text, cut behind the first character of each of these markers."""
    if not cut:
        return [text]
    anywhere = re.compile("(?=" + "|".join(re.escape(marker) for marker in sorted(cut)) + ")")
    at = [0, *(found.start() + 1 for found in anywhere.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


def _are_ids(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(token) is int and 0 <= token < 2**31 for token in value)
