"""The protocols `ChatFormat` and `Tokenizer`: how conversations become a model's tokens and its turns are parsed."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gametape.engines.conversation import Call, ToolDefinition, ToolResponse


class Tokenizer(Protocol):
    """Text to ids and back. `encode` never makes a special token out of text, such as the output of a tool."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, without special tokens; invalid bytes become U+FFFD."""
        ...


class ParsedTurn(NamedTuple):
    """A parsed turn; the fields are those of `Reply`."""

    text: str
    calls: tuple[Call, ...] = ()
    problem: str | None = None


class ChatFormat(Protocol):
    """Makes all ids that the harness adds; none of them depends on what was sampled before."""

    @property
    def stop_ids(self) -> Sequence[int]:
        """Each of them ends a turn and is part of it."""
        ...

    @property
    def header(self) -> Sequence[int]:
        """The ids at the end of every prompt that begin a turn of the model; empty where they also end a message."""
        ...

    def encode_opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        """The beginning of a conversation, up to where the model's first turn begins."""
        ...

    def encode_user(self, text: str) -> list[int]:
        """A message of the user after a closed turn of the model, up to where its next turn begins."""
        ...

    def encode_tool_responses(self, responses: Sequence[ToolResponse]) -> list[int]:
        """Tool results after a closed turn of the model, up to where its next turn begins."""
        ...

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        """The ids that must follow a completion to close the turn: fewer if it ended with a stop id."""
        ...

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:
        """Parse a turn; never raises."""
        ...

    def encode_call(self, call: Call) -> list[int]:
        """A turn that holds this call, as the model would have to write it."""
        ...

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        """EBNF of a turn that ends in one well-formed call; None where the format has none."""
        ...


def insert_hint(chat_format: ChatFormat, prompt_ids: Sequence[int], text: str) -> list[int]:
    """The prompt of a turn with one more message of the user before that turn begins.

    The other ids stay the same. Where the format has no header for a turn, the message follows an empty turn.
    """
    header = list(chat_format.header)
    prompt = list(prompt_ids)
    if header and prompt[-len(header) :] == header:
        return [*prompt[: -len(header)], *chat_format.encode_user(text)]
    return [*prompt, *chat_format.close_turn(()), *chat_format.encode_user(text)]
