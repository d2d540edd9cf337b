"""A fenced block is a call of one tool, and nothing else about the chat format changes."""

import pytest

from gametape.core.messages import Sampling
from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.chat_formats.code_block import CodeBlockChatFormat, with_code_block_calls
from gametape.engines.chat_formats.fenced import write_fenced_call
from gametape.engines.conversation import Model
from gametape.engines.scripted import scripted_model

CHAT_FORMAT = CodeBlockChatFormat(byte_chat_format(), "answer", "code")
TOOLS = [{"name": "answer", "description": "Hand it in.", "parameters": {}}, {"name": "look", "parameters": {}}]


def parsed(text: str) -> tuple[tuple[str, dict[str, object]], ...]:
    return tuple((call.name, call.arguments) for call in CHAT_FORMAT.parse(list(text.encode())).calls)


@pytest.mark.parametrize("fence", ["```python", "```py", "```", "``` python", "```python "])
def test_the_first_block_is_the_call(fence: str) -> None:
    text = f"Here it is:\n{fence}\ndef f():\n    return 1\n```\nOr so:\n```python\nx\n```\n"
    assert parsed(text) == (("answer", {"code": "def f():\n    return 1\n"}),)


@pytest.mark.parametrize("text", ["", "def f(): pass", "```python\nnever closed", "see ```y```", "```sh\nls\n```"])
def test_what_is_no_block_of_code_is_no_call(text: str) -> None:
    assert parsed(text) == ()


def test_a_call_in_the_usual_form_goes_before() -> None:
    usual = write_fenced_call("look", {"at": "x"})
    assert parsed(f"```python\nx\n```\n{usual}") == (("look", {"at": "x"}),)
    broken = CHAT_FORMAT.parse(list(b"```python\nx\n```\n```tool\n{\n```"))
    assert not broken.calls
    assert broken.problem


def test_the_tool_needs_no_description() -> None:
    opening = bytes(i for i in CHAT_FORMAT.encode_opening("Hi.", TOOLS, "Go.") if i < 256).decode()
    assert "look" in opening
    assert "answer" not in opening


def test_only_models_that_take_ids_can_be_spoken_to_like_that() -> None:
    class Server:
        name = "server"

    model = scripted_model("x", [])
    changed = with_code_block_calls(model, "answer", "code")
    assert isinstance(changed.start_conversation(Sampling()).chat_format, CodeBlockChatFormat)  # type: ignore[attr-defined]
    server: Model = Server()  # type: ignore[assignment]
    assert with_code_block_calls(server, "answer", "code") is server
