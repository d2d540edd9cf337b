"""Networks that the engine does not run itself, run by transformers: one request at a time, and slower for it."""

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation, TokenUsage, WeightUpdate
from gametape.engines.base_engine import BaseEngine
from gametape.engines.errors import EngineError
from gametape.engines.torch.sampler import sample_tokens, uniform
from gametape.engines.torch.weights import load_weights, match_weights

_CHUNK = 1024
"""How many tokens of a prompt are read at once."""


@dataclass
class _Read:
    """What the network has read of one conversation."""

    ids: list[int] = field(default_factory=list)
    cache: Any = field(default_factory=DynamicCache)

    def cut_back(self, prompt: list[int]) -> int:
        """Forget what the prompt does not begin with, and return what is left; at least its last token is read anew."""
        same = next((at for at, (a, b) in enumerate(zip(self.ids, prompt, strict=False)) if a != b), None)
        keep = min(len(self.ids), len(prompt) - 1) if same is None else min(same, len(prompt) - 1)
        if keep < len(self.ids):
            self.cache.crop(keep - len(self.ids))
            del self.ids[keep:]
        return keep


class TransformersEngine(BaseEngine):
    """An `Engine`. It keeps what it has read of conversations, the latest ones, up to `kept_tokens` in all.

    It draws by the same rules and the same random numbers as `TorchEngine`, and holds to no grammar.
    """

    def __init__(self, network: Any, kept_tokens: int = 1 << 15) -> None:
        """`network` is a causal language model as transformers makes it."""
        self._network = network.eval()
        self._vocabulary = network.get_input_embeddings().num_embeddings
        self._kept_tokens = kept_tokens
        self._read: OrderedDict[str, _Read] = OrderedDict()
        self._version = 0
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="transformers-engine")

    async def generate(self, request: GenerateRequest) -> Generation:
        given_up = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, self._generate, request, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def update_weights(self, update: WeightUpdate) -> None:
        await asyncio.get_running_loop().run_in_executor(self._worker, self._update, update)

    async def policy_version(self) -> int:
        return self._version

    def weights_changed(self, version: int) -> None:
        """The trainer has changed the network in place; holds for every request that is made after this call."""
        self._worker.submit(self._start_version, version)

    def forget(self) -> None:
        self._worker.submit(self._read.clear)

    async def close(self) -> None:
        """Wait for the request in hand; the weights go with the object."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    def _generate(self, request: GenerateRequest, given_up: threading.Event) -> Generation:
        started = time.monotonic()
        self._check(request)
        # Out of the shelf while in use: if this fails half-way, what was read is not what `ids` says.
        read = self._read.pop(request.conversation_id, None) or _Read()
        cached = read.cut_back(request.prompt_ids)
        seed = secrets.randbits(63) if request.sampling.seed is None else request.sampling.seed % (1 << 63)
        sampled: list[int] = []
        logprobs: list[float] = []
        unread = request.prompt_ids[cached:]
        while len(sampled) < request.max_tokens and not given_up.is_set():
            logits_1V = self._logits(read, unread)
            number_1 = uniform(torch.tensor([seed]), torch.tensor([len(read.ids)]))
            token_1, logprob_1 = sample_tokens(logits_1V, [request.sampling], number_1)
            unread = token_1.tolist()
            sampled += unread
            logprobs += logprob_1.tolist()
            if unread[0] in request.stop_ids:
                break
        if request.conversation_id:
            self._keep(request.conversation_id, read)
        ended = bool(sampled) and sampled[-1] in request.stop_ids
        return Generation(
            request_id=request.request_id,
            completion_ids=sampled,
            logprobs=logprobs,
            policy_versions=[self._version] * len(sampled),
            finish="stop" if ended else "cancelled" if given_up.is_set() else "length",
            usage=TokenUsage(
                prompt_tokens=len(request.prompt_ids),
                completion_tokens=len(sampled),
                cached_tokens=cached,
                seconds=time.monotonic() - started,
            ),
        )

    def _check(self, request: GenerateRequest) -> None:
        if not request.prompt_ids or max(request.prompt_ids) >= self._vocabulary:
            raise BadInput(f"a prompt has one token or more, each with an id below {self._vocabulary}")
        if self._version < request.min_policy_version:
            wanted = request.min_policy_version
            raise EngineError("refused", f"weights {wanted} or newer were asked for; these are {self._version}")

    def _logits(self, read: _Read, ids: list[int]) -> Tensor:
        """Read on, and say what comes next."""
        for start in range(0, len(ids), _CHUNK):
            chunk = torch.tensor([ids[start : start + _CHUNK]], device=self._network.device)
            with torch.inference_mode():
                output = self._network(chunk, past_key_values=read.cache, use_cache=True, logits_to_keep=1)
        read.ids += ids
        logits_1V: Tensor = output.logits[:, -1].float().cpu()
        return logits_1V

    def _keep(self, conversation_id: str, read: _Read) -> None:
        self._read[conversation_id] = read
        while sum(len(each.ids) for each in self._read.values()) > self._kept_tokens:
            self._read.popitem(last=False)

    def _update(self, update: WeightUpdate) -> None:
        """All of the new weights, or none of them."""
        pairs = match_weights(self._network, load_weights(Path(update.location)))
        self._read.clear()
        pairs.copy()
        self._version = update.policy_version

    def _start_version(self, version: int) -> None:
        self._read.clear()
        self._version = version
