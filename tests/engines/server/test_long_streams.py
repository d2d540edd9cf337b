"""A long stream costs as much as it has characters: no piece is copied again when another comes."""

from typing import Any

import pytest

from gametape.engines.anthropic import message_stream
from gametape.engines.ollama import chat_stream as ollama_stream
from gametape.engines.openai import chat_stream as openai_stream

PIECES = [f"piece {number} " for number in range(500)]


class Piece(str):
    """A string that must not be added to another: the sum would copy all that came before."""

    __slots__ = ()

    def __add__(self, other: Any) -> str:
        raise AssertionError("added")

    def __radd__(self, other: Any) -> str:
        raise AssertionError("added")


def test_chat_completions() -> None:
    received = openai_stream.ChatCompletion()
    for piece in map(Piece, PIECES):
        details = [{"type": "reasoning.text", "index": 0, "text": piece}]
        call = {"index": 0, "function": {"arguments": piece}}
        delta = {"content": piece, "reasoning": piece, "reasoning_details": details, "tool_calls": [call]}
        openai_stream._add_event(received, {"choices": [{"delta": delta}]})
    whole = "".join(PIECES)
    assert received.text == received.reasoning.text == received.calls.parts[0].arguments == whole
    assert (received.reasoning.state() or {})["details"][0]["text"] == whole


@pytest.mark.parametrize(
    ("delta", "name"),
    [("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")],
)
def test_messages(delta: str, name: str) -> None:
    received = message_stream.StreamedMessage()
    block = {"type": "text", name: Piece("so: ")}
    message_stream._add_event(received, {"type": "content_block_start", "index": 0, "content_block": block})
    for piece in map(Piece, PIECES):
        event = {"type": "content_block_delta", "index": 0, "delta": {"type": delta, name: piece}}
        message_stream._add_event(received, event)
    received.join_pieces()
    assert received.blocks[0][name] == "so: " + "".join(PIECES)


def test_ollama() -> None:
    received = ollama_stream.OllamaAnswer()
    for piece in map(Piece, PIECES):
        ollama_stream._add_event(received, {"message": {"content": piece, "thinking": piece}})
    assert received.text == received.thinking == "".join(PIECES)
