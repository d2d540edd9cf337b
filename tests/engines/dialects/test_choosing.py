"""Which dialect the files of a model ask for."""

import json

import pytest

from gametape.core.errors import BadInput
from gametape.engines.dialects.choosing import dialect_of
from gametape.engines.dialects.native import NativeDialect
from gametape.engines.dialects.plain import PlainDialect

from ..tiny import CHATML, HERMES, fetched_smollm2, write_directory


def test_the_template_decides(tmp_path):
    assert isinstance(dialect_of(write_directory(tmp_path, CHATML)), PlainDialect)
    assert isinstance(dialect_of(write_directory(tmp_path, HERMES)), NativeDialect)
    assert dialect_of(tmp_path).stop_ids == (0, 2)


def test_of_several_templates_the_one_for_tools_is_taken(tmp_path):
    write_directory(tmp_path, CHATML)
    (tmp_path / "chat_template.jinja").unlink()
    named = [{"name": "default", "template": CHATML}, {"name": "tool_use", "template": HERMES}]
    for found, kind in ((CHATML, PlainDialect), (named, NativeDialect), (named[:1], PlainDialect)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": found}))
        assert isinstance(dialect_of(tmp_path), kind)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(BadInput, match="tokenizer"):
        dialect_of(tmp_path)
    write_directory(tmp_path, CHATML)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(BadInput, match="no chat template"):
        dialect_of(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(BadInput, match="not JSON"):
        dialect_of(tmp_path)


def test_smollm2_speaks_the_plain_form():
    dialect = dialect_of(fetched_smollm2())
    assert isinstance(dialect, PlainDialect)
    assert dialect.stop_ids == (2,)
    opening = "<|im_start|>system\nA<|im_end|>\n<|im_start|>user\nB<|im_end|>\n<|im_start|>assistant\n"
    assert dialect.opening("A", [], "B") == dialect.tokenizer.encode_marked(opening)
