"""Which chat format the files of a model ask for."""

import json

import pytest

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.fenced import FencedChatFormat
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.native import NativeChatFormat

from ..tiny import CHATML, HERMES, fetched_smollm2, write_directory


def test_the_template_decides(tmp_path):
    assert isinstance(load_chat_format(write_directory(tmp_path, CHATML)), FencedChatFormat)
    assert isinstance(load_chat_format(write_directory(tmp_path, HERMES)), NativeChatFormat)
    assert load_chat_format(tmp_path).stop_ids == (0, 2)


def test_of_several_templates_the_one_for_tools_is_taken(tmp_path):
    write_directory(tmp_path, CHATML)
    (tmp_path / "chat_template.jinja").unlink()
    named = [{"name": "default", "template": CHATML}, {"name": "tool_use", "template": HERMES}]
    for found, kind in ((CHATML, FencedChatFormat), (named, NativeChatFormat), (named[:1], FencedChatFormat)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": found}))
        assert isinstance(load_chat_format(tmp_path), kind)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(BadInput, match="tokenizer"):
        load_chat_format(tmp_path)
    write_directory(tmp_path, CHATML)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(BadInput, match="no chat template"):
        load_chat_format(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(BadInput, match="not JSON"):
        load_chat_format(tmp_path)


def test_smollm2_speaks_the_plain_form():
    chat_format = load_chat_format(fetched_smollm2())
    assert isinstance(chat_format, FencedChatFormat)
    assert chat_format.stop_ids == (2,)
    opening = "<|im_start|>system\nA<|im_end|>\n<|im_start|>user\nB<|im_end|>\n<|im_start|>assistant\n"
    assert chat_format.encode_opening("A", [], "B") == chat_format.tokenizer.encode_with_special(opening)
