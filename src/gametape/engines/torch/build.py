"""Builds engines, from a directory of weights or from a network that a trainer holds."""

import logging
import os
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.protocol import Tokenizer
from gametape.engines.token_conversation import TokenModel
from gametape.engines.torch.attention import cpu, reference
from gametape.engines.torch.attention.interface import PackedForward
from gametape.engines.torch.decode_rounds import GraphRunner
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.device import placement_from_environment
from gametape.engines.torch.engine import TorchEngine
from gametape.engines.torch.grammar import GrammarCompiler
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.stepper import EngineLimits, Stepper
from gametape.engines.torch.weights import StandbyWeights
from gametape.engines.transformers_engine import TransformersEngine

BLOCK_SIZE = 16
CPU_LIMITS = EngineLimits(token_budget=512)
"""On a CPU, matrix products are faster for 500 rows than for 100; with more, decoding would only wait."""
GPU_LIMITS = EngineLimits(max_sequences=512, token_budget=8192)
_HEAD_DIMS = (16, 32, 64, 128)
"""The head dimensions that the GPU kernels support."""


def open_torch_model(directory: Path, name: str) -> TokenModel:
    """The model in a directory of weights, config and tokenizer files. Code in the directory is not run."""
    chat_format = load_chat_format(directory)
    placement = placement_from_environment()
    network = load_network(directory, placement.torch_dtype).to(placement.device)
    engine = build_engine(network, tokenizer=chat_format.tokenizer) or slow_engine(network, name)
    window = int(network.config.get_text_config().max_position_embeddings)
    return TokenModel(name=name, engine=engine, chat_format=chat_format, window=window, on_close=engine.close)


def load_network(directory: Path, dtype: torch.dtype) -> Any:
    """The causal language model that transformers loads from a directory. Code in the directory is not run."""
    auto: Any = AutoModelForCausalLM
    disable_progress_bar()
    try:
        return auto.from_pretrained(directory, dtype=dtype, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever transformers raises for strange files, there is no model in them
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise BadInput(f"{directory} is not a model that can be loaded: {reason}") from error


def build_engine(
    network: Any,
    limits: EngineLimits | None = None,
    kv_tokens: int | None = None,
    tokenizer: Tokenizer | None = None,
    own_weights: bool = False,
) -> TorchEngine | None:
    """An engine over the parameters of this network, with memory for the keys and values of `kv_tokens` tokens.

    With `own_weights` it has two copies of them instead and decodes on while new ones are published. With a tokenizer
    it can constrain requests to grammars. None where the engine does not support the network's family.
    """
    stepper = build_stepper(deepcopy(network).requires_grad_(False) if own_weights else network, limits, kv_tokens)
    if stepper is None:
        return None
    grammars = GrammarCompiler(tokenizer, stepper.decoder.spec.vocabulary) if tokenizer else None
    return TorchEngine(stepper, grammars, StandbyWeights(stepper) if own_weights else None)


def build_stepper(network: Any, limits: EngineLimits | None = None, kv_tokens: int | None = None) -> Stepper | None:
    """The same without a thread: the caller takes the steps."""
    spec = read_decoder_spec(network.config)
    if spec is None:
        return None
    decoder = Decoder(network.eval(), spec)
    on_cpu = decoder.device.type == "cpu"
    width = 2 * spec.layers * spec.kv_heads * spec.head_dim * decoder.dtype.itemsize
    blocks = -(-(kv_tokens or _kv_bytes(decoder.device) // width) // BLOCK_SIZE)
    pool = BlockPool(spec, blocks, BLOCK_SIZE, decoder.device, decoder.dtype)
    limits = limits or (CPU_LIMITS if on_cpu else GPU_LIMITS)
    if on_cpu:
        return Stepper(decoder, pool, cpu.plan, limits)
    return Stepper(decoder, pool, reference.plan, limits, *_gpu_kernels(decoder, pool, limits))


def _gpu_kernels(
    decoder: Decoder, pool: BlockPool, limits: EngineLimits
) -> tuple[GraphRunner | None, PackedForward | None]:
    """Our own kernels, where Triton is installed and supports the head dimension."""
    if decoder.spec.head_dim not in _HEAD_DIMS or find_spec("triton") is None:
        return None, None
    from gametape.engines.torch.cuda_forward import CudaForward  # noqa: PLC0415 - needs triton
    from gametape.engines.torch.cuda_graphs import DecodeGraphs  # noqa: PLC0415
    from gametape.engines.torch.cuda_step import BufferSizes, DecodeStep  # noqa: PLC0415
    from gametape.engines.torch.cuda_tuner import StepTuner  # noqa: PLC0415

    longest = min(int(decoder.module.config.max_position_embeddings), pool.block_count * pool.block_size)
    step = DecodeStep(decoder, pool, BufferSizes(rows=limits.max_sequences, context=longest))
    # In float32 products are not made in the tensor cores, and their kernels take minutes to compile in large tiles.
    graphs = DecodeGraphs(step) if decoder.dtype == torch.float32 else DecodeGraphs(step, StepTuner(step).prepare)
    return graphs, CudaForward(decoder, pool)


def slow_engine(network: Any, name: str) -> TransformersEngine:
    """For families that the engine does not support; it says so."""
    kind = network.config.model_type
    logging.getLogger(__name__).warning("%s: networks of type %s run one request at a time, slowly", name, kind)
    return TransformersEngine(network)


def _kv_bytes(device: torch.device) -> int:
    """Bytes for keys and values: an eighth of a machine's memory, half of what a GPU has left."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) // 2
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
