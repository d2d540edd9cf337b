"""The encoder in numpy against the reference implementation, on a tiny model made here."""

import json
from pathlib import Path
from typing import Any

import pytest

from gametape.agent.tools import embedder

TEXTS = ["alpha beta", "beta", "alpha gamma gamma alpha beta", "unknown words"]


def tiny_model(directory: Path) -> Any:
    """Random weights, a vocabulary of a few words; returns the reference model."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=10, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    model = transformers.BertModel(config).eval()
    model.save_pretrained(directory)
    words = ["[PAD]", "[UNK]", "alpha", "beta", "gamma"]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    return model


def test_it_computes_what_the_reference_computes(tmp_path: Path) -> None:
    import numpy as np
    import torch

    model = tiny_model(tmp_path)
    ours = embedder.Embedder(tmp_path).embed(TEXTS)
    vocabulary = {"alpha": 2, "beta": 3, "gamma": 4}
    for text, row in zip(TEXTS, ours, strict=True):
        ids = torch.tensor([[vocabulary.get(word, 1) for word in text.split()]])
        with torch.no_grad():
            mean = model(ids).last_hidden_state[0].mean(0)
        theirs = (mean / mean.norm()).numpy()
        assert np.abs(row - theirs).max() < 1e-5


def test_no_texts_are_no_rows(tmp_path: Path) -> None:
    tiny_model(tmp_path)
    assert len(embedder.Embedder(tmp_path).embed([])) == 0


@pytest.mark.skipif(not embedder.available(), reason="the embedding model is not installed")
def test_the_real_model_knows_what_is_alike() -> None:
    cat, kitten, tax = embedder.embedder().embed(["a cat sleeps", "the kitten is napping", "corporate tax law"])
    assert float(cat @ kitten) > 0.5 > float(cat @ tax)
