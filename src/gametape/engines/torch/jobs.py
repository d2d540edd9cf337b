"""What the engine has been asked to do: continue a prompt, or say how likely given ids are."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from gametape.core.messages import GenerateRequest, Generation, Sampling, TokenUsage
from gametape.engines.torch.grammar import GrammarMatcher
from gametape.engines.torch.sequence_cache import SequenceState

FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(eq=False)
class GenerateJob:
    """A prompt and what has been sampled so far."""

    request: GenerateRequest
    on_done: Callable[[Generation], None]
    arrival: int
    matcher: GrammarMatcher | None = None
    """Holds it to the grammar that was asked for, where there is one and as long as that is possible."""
    sequence: SequenceState = field(init=False)
    seed: int = field(init=False)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    cached_tokens: int = 0
    interrupted: bool = False
    """Whether it has lost keys and values, so that what it finds again is not news."""
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        prompt = self.request.prompt_ids
        self.sequence = SequenceState(list(prompt), first_output=len(prompt) - 1)
        seed = self.request.sampling.seed
        self.seed = secrets.randbits(63) if seed is None else seed % (1 << 63)
        self._stops = frozenset(self.request.stop_ids)

    @property
    def sampling(self) -> Sampling:
        return self.request.sampling

    @property
    def max_length(self) -> int:
        """How many tokens may have to be kept at once."""
        return len(self.request.prompt_ids) + self.request.max_tokens - 1

    @property
    def tokens_left(self) -> int:
        """How many tokens it may still draw."""
        return self.request.max_tokens - len(self.logprobs)

    def append_sampled(self, tokens: list[int], logprobs: list[float], version: int) -> FinishReason | None:
        """Take one token more, or several; returns why the last of them is the last one of all."""
        self.sequence.ids += tokens
        self.sequence.first_output = len(self.sequence.ids) - 1
        self.logprobs += logprobs
        self.versions += [version] * len(tokens)
        if tokens[-1] in self._stops:
            return "stop"
        if self.matcher and self._grammar_ends(self.matcher, tokens):
            return "stop"
        return "length" if self.tokens_left <= 0 else None

    def _grammar_ends(self, matcher: GrammarMatcher, tokens: list[int]) -> bool:
        """Whether it is fulfilled, and no stop id is there to say so."""
        for token in tokens:
            matcher.consume(token)
        return not self._stops and matcher.finished

    def finish(self, reason: FinishReason) -> None:
        prompt = len(self.request.prompt_ids)
        self.on_done(
            Generation.model_construct(
                request_id=self.request.request_id,
                completion_ids=self.sequence.ids[prompt:],
                logprobs=self.logprobs,
                policy_versions=self.versions,
                finish=reason,
                usage=TokenUsage(
                    prompt_tokens=prompt,
                    completion_tokens=len(self.logprobs),
                    cached_tokens=self.cached_tokens,
                    seconds=time.monotonic() - self.started,
                ),
                constrained=self.matcher is not None,
            )
        )


@dataclass(eq=False)
class ScoreJob:
    """Ids whose log-probabilities are asked for, from `start` on. `told` hears None if it was cancelled."""

    ids: list[int]
    start: int
    sampling: Sampling
    on_done: Callable[[list[float] | None], None]
    arrival: int
    sequence: SequenceState = field(init=False)
    logprobs: list[float] = field(default_factory=list)
    cached_tokens: int = 0
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.sequence = SequenceState(self.ids[:-1], first_output=self.start - 1)

    @property
    def max_length(self) -> int:
        return len(self.ids) - 1

    def restart(self) -> None:
        """Forget what has been scored: it was by other weights."""
        self.logprobs.clear()
        self.sequence.first_output = self.start - 1

    def append_scored(self, logprobs: list[float]) -> None:
        self.logprobs += logprobs
        self.sequence.first_output += len(logprobs)

    def finish(self, reason: FinishReason) -> None:
        self.on_done(None if reason == "cancelled" else self.logprobs)


EngineJob = GenerateJob | ScoreJob
