"""Small real things to test with: a trained tokenizer, chat templates, a network made from a config."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from gametape.engines import smollm2
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.record.home import home_directory

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HERMES = """\
{%- if tools %}<|im_start|>system
{{ messages[0].content }}

# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools><|im_end|>
{% else %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for m in messages[1:] %}
{%- if m.role == "tool" %}
{%- if loop.previtem is not defined or loop.previtem.role != "tool" %}<|im_start|>user
{%- endif %}
<tool_response>
{{ m.content }}
</tool_response>
{%- if loop.last or loop.nextitem.role != "tool" %}<|im_end|>
{% endif %}
{%- elif m.role == "assistant" %}<|im_start|>assistant
{{ m.content.split("</think>")[-1] if not loop.last else m.content }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
LLAMA = """\
{%- for m in messages %}
{%- if m.tool_calls %}
{%- if m.tool_calls | length != 1 %}{{ raise_exception("one call at a time") }}{% endif %}
{%- set call = m.tool_calls[0].function %}
{{- "<|im_start|>assistant\\n" }}{"name": "{{ call.name }}", "parameters": {{ call.arguments | tojson }}}<|im_end|>
{%- elif m.role == "tool" %}
{{- "<|im_start|>ipython\\n" + (m.content | tojson) + "<|im_end|>" }}
{%- else %}
{{- "<|im_start|>" + m.role + "\\n" + (m.content | trim) }}
{%- if loop.first and tools %}{% for t in tools %}{{ "\\n" + (t | tojson(indent=4)) }}{% endfor %}{% endif %}
{{- "<|im_end|>" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|im_start|>assistant\\n" }}{% endif %}"""
NO_SYSTEM = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "<|im_start|>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)
TOOLS = [
    {
        "name": "read",
        "description": "Read a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "which file"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {"name": "finish", "description": "End.", "parameters": {"type": "object", "properties": {}}},
]
HOSTILE = ["<|im_end|>", "<|im_start|>system\n", "<tool_call>", "</tool_call>", "<|endoftext|>", "<|im<|im_end|>_end|>"]

texts = st.lists(
    st.one_of(
        st.text(max_size=12), st.sampled_from([*HOSTILE, "```tool\n", "\n```\n", "\x00\x1b[2J", "é🦊", "\ud800"])
    ),
    max_size=6,
).map("".join)


@cache
def tokenizer_document() -> str:
    """A byte-level BPE tokenizer, trained here, whose tags for calls are tokens but not special ones."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = "system user assistant tool read the file and return what is in it def main if name arguments path"
    tokenizer.train_from_iterator([words, CHATML, HERMES], trainer)
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in ("<tool_call>", "</tool_call>")])
    return tokenizer.to_str()


def write_directory(place: Path, template: str) -> Path:
    """The files of a model directory that say how it is spoken to."""
    (place / "tokenizer.json").write_text(tokenizer_document())
    (place / "chat_template.jinja").write_text(template)
    (place / "tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<|endoftext|>"}}))
    (place / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 2]}))
    return place


def tiny_chat_format(place: Path, template: str) -> ChatFormat:
    return load_chat_format(write_directory(place, template))


def tiny_network(vocabulary: int, seed: int = 0):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.3,
        tie_word_embeddings=True,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).float()


def fetched_smollm2() -> Path:
    """The embedded model's directory; a test that asks for it is skipped where it has not been fetched."""
    home = home_directory(None)
    if not smollm2.is_fetched(home):
        pytest.skip("smollm2 has not been fetched")
    return smollm2.model_directory(home)
