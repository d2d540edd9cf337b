"""Writes tokenizers whose tokens are whole words, for tiny policies; they load like any other tokenizer."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

USER, TOOL, ACT, END, PAD = "<user>", "<tool>", "<act>", "<end>", "<pad>"
"""The beginning of a message, by its role, the end of a turn, and padding."""
MARKERS = (USER, TOOL, ACT, END, PAD)
UNKNOWN = "<unk>"
TERSE_FORMAT = "terse"


def save_word_tokenizer(directory: Path, words: Sequence[str], signatures: Mapping[str, Sequence[str]]) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` for a policy that uses the terse chat format.

    Ids are: unknown words 0, then the words in their order, then the markers. `signatures` names the arguments of each
    tool in their order. The files also load in transformers.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokenizer.json").write_text(word_tokenizer_json(words), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
        "gametape": {"dialect": TERSE_FORMAT, "signatures": {tool: list(names) for tool, names in signatures.items()}},
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")


def word_tokenizer_json(words: Sequence[str]) -> str:
    """The content of a `tokenizer.json`. Markers are not in the vocabulary of words, so no text encodes to them."""
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys((UNKNOWN, *words)))}
    added: list[dict[str, Any]] = [
        {
            "id": len(vocabulary) + number,
            "content": marker,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, marker in enumerate(MARKERS)
    ]
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }
    return json.dumps(document, indent=1)
