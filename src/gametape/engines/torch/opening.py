"""From a directory of weights, or a network the trainer holds, to an engine."""

import logging
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from gametape.core.errors import BadInput
from gametape.engines.dialects.choosing import dialect_of
from gametape.engines.token_conversation import TokenModel
from gametape.engines.torch.attention import cpu, reference
from gametape.engines.torch.blocks import BlockPool
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.family import spec_of
from gametape.engines.torch.stepper import Limits, Stepper
from gametape.engines.transformers_engine import TransformersEngine

BLOCK = 16
ON_CPU = Limits(budget=128)
"""A CPU's matrix products are as fast for 100 rows as for 1,000, and decoding waits less."""
ON_GPU = Limits(slots=512, budget=4096)


def open_torch(directory: Path, name: str) -> TokenModel:
    """The model in a directory of weights, config and tokenizer files, ready to be spoken to."""
    dialect = dialect_of(directory)
    auto: Any = AutoModelForCausalLM
    disable_progress_bar()
    try:
        network = auto.from_pretrained(directory, dtype=torch.float32, local_files_only=True)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise BadInput(f"{directory} is not a model that can be loaded: {str(error).splitlines()[0]}") from None
    engine = engine_for(network) or _plain(network, name)
    window = int(network.config.get_text_config().max_position_embeddings)
    return TokenModel(name=name, engine=engine, dialect=dialect, window=window, closing=engine.close)


def engine_for(network: Any, limits: Limits | None = None, tokens: int | None = None) -> TorchEngine | None:
    """An engine over the very parameters of this network, with room for the keys and values of so many tokens.

    None where the network is of a family that the engine does not run.
    """
    spec = spec_of(network.config)
    if spec is None:
        return None
    decoder = Decoder(network.eval(), spec)
    on_cpu = decoder.device.type == "cpu"
    width = 2 * spec.layers * spec.kv_heads * spec.head_dim * decoder.dtype.itemsize
    blocks = -(-(tokens or _room(decoder.device) // width) // BLOCK)
    pool = BlockPool(spec, blocks, BLOCK, decoder.device, decoder.dtype)
    planner = cpu.plan if on_cpu else reference.plan
    return TorchEngine(Stepper(decoder, pool, planner, limits or (ON_CPU if on_cpu else ON_GPU)))


def _plain(network: Any, name: str) -> TransformersEngine:
    kind = network.config.model_type
    logging.getLogger(__name__).warning("%s: networks of type %s run one request at a time, slowly", name, kind)
    return TransformersEngine(network)


def _room(device: torch.device) -> int:
    """Bytes for keys and values: an eighth of a machine's memory, half of what a GPU has left."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) // 2
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
