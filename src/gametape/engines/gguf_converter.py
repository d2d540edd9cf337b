"""`python -m gametape.engines.gguf_converter FILE OUT`: a quantised GGUF file as a plain float32 model directory.

It runs in a process of its own, because it holds the weights several times over and the caller need not load torch.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(gguf: Path, out: Path) -> None:
    """Write config, safetensors and tokenizer files into `out`."""
    auto: Any = AutoModelForCausalLM
    quantised = auto.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = quantised.config
    del config.quantization_config
    # transformers refuses to save a model that it loaded quantised, so the values move into one that never was.
    dense = auto.from_config(config)
    dense.load_state_dict(quantised.state_dict())
    dense.generation_config = quantised.generation_config
    dense.save_pretrained(out)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(out)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
