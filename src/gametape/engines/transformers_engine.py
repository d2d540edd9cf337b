"""The engine for networks that `TorchEngine` does not support: transformers runs them, one request at a time."""

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation, TokenUsage, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.errors import EngineError
from gametape.engines.tokenizers.text import common_prefix_length
from gametape.engines.torch.sampler import sample_tokens, uniform
from gametape.engines.torch.weights import load_weights, match_weights

_PREFILL_CHUNK = 1024
"""Tokens of a prompt per forward pass."""


@dataclass
class _CachedConversation:
    """The ids of one conversation that the network has read, and its KV cache."""

    ids: list[int] = field(default_factory=list)
    cache: Any = field(default_factory=DynamicCache)

    def crop_to(self, prompt: list[int]) -> int:
        """Keep the common prefix with a prompt, without the prompt's last token, and return its length."""
        keep = min(common_prefix_length(self.ids, prompt), len(prompt) - 1)
        if keep < len(self.ids):
            self.cache.crop(keep - len(self.ids))
            del self.ids[keep:]
        return keep


class TransformersEngine(PolicyEngine):
    """A `PolicyEngine`. It keeps the KV caches of the latest conversations, up to `cached_tokens` tokens in all.

    It samples by the same rules and the same random numbers as `TorchEngine`, and ignores grammars.
    """

    def __init__(self, network: Any, cached_tokens: int = 1 << 15) -> None:
        """`network` is a causal language model as transformers makes it."""
        self._network = network.eval()
        self._vocabulary = network.get_input_embeddings().num_embeddings
        self._cached_tokens = cached_tokens
        self._conversations: OrderedDict[str, _CachedConversation] = OrderedDict()
        self._version = 0
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="transformers-engine")

    async def generate(self, request: GenerateRequest) -> Generation:
        cancelled = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, self._generate, request, cancelled)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def update_weights(self, update: WeightUpdate) -> None:
        await asyncio.get_running_loop().run_in_executor(self._worker, self._update, update)

    async def policy_version(self) -> int:
        return self._version

    @asynccontextmanager
    async def pause_for_update(self, version: int | None = None) -> AsyncIterator[None]:
        """The request that runs is finished first; others wait."""
        reached = asyncio.Event()
        loop, resume = asyncio.get_running_loop(), threading.Event()

        def hold() -> None:
            loop.call_soon_threadsafe(reached.set)
            resume.wait()

        self._worker.submit(hold)
        try:
            await reached.wait()
            yield
            if version is not None:
                self.weights_changed(version)
        finally:
            resume.set()

    def weights_changed(self, version: int) -> None:
        """The trainer has changed the network in place; holds for every request that is made after this call."""
        self._worker.submit(self._start_version, version)

    def forget(self) -> None:
        self._worker.submit(self._conversations.clear)

    async def close(self) -> None:
        """Wait for the running request; the weights are freed with the object."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    def _generate(self, request: GenerateRequest, cancelled: threading.Event) -> Generation:
        started = time.monotonic()
        self._check(request)
        # Not in the cache while in use: if this fails half-way, the KV cache is not what `ids` says.
        state = self._conversations.pop(request.conversation_id, None) or _CachedConversation()
        cached = state.crop_to(request.prompt_ids)
        seed = secrets.randbits(63) if request.sampling.seed is None else request.sampling.seed % (1 << 63)
        sampled: list[int] = []
        logprobs: list[float] = []
        unread = request.prompt_ids[cached:]
        while len(sampled) < request.max_tokens and not cancelled.is_set():
            logits_1V = self._logits(state, unread)
            number_1 = uniform(torch.tensor([seed]), torch.tensor([len(state.ids)]))
            token_1, logprob_1 = sample_tokens(logits_1V, [request.sampling], number_1)
            unread = token_1.tolist()
            sampled += unread
            logprobs += logprob_1.tolist()
            if unread[0] in request.stop_ids:
                break
        if request.conversation_id:
            self._keep(request.conversation_id, state)
        ended = bool(sampled) and sampled[-1] in request.stop_ids
        return Generation(
            request_id=request.request_id,
            completion_ids=sampled,
            logprobs=logprobs,
            policy_versions=[self._version] * len(sampled),
            finish="stop" if ended else "cancelled" if cancelled.is_set() else "length",
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

    def _logits(self, state: _CachedConversation, ids: list[int]) -> Tensor:
        """Read these ids and return the logits of the next token."""
        for start in range(0, len(ids), _PREFILL_CHUNK):
            chunk = torch.tensor([ids[start : start + _PREFILL_CHUNK]], device=self._network.device)
            with torch.inference_mode():
                output = self._network(chunk, past_key_values=state.cache, use_cache=True, logits_to_keep=1)
        state.ids += ids
        logits_1V: Tensor = output.logits[:, -1].float().cpu()
        return logits_1V

    def _keep(self, conversation_id: str, state: _CachedConversation) -> None:
        self._conversations[conversation_id] = state
        while sum(len(kept.ids) for kept in self._conversations.values()) > self._cached_tokens:
            self._conversations.popitem(last=False)

    def _update(self, update: WeightUpdate) -> None:
        """Load all of the new weights, or none of them."""
        pairs = match_weights(self._network, load_weights(Path(update.location)))
        self._conversations.clear()
        pairs.copy()
        self._version = update.policy_version

    def _start_version(self, version: int) -> None:
        self._conversations.clear()
        self._version = version
