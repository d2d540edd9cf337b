"""The jobs of the engine: to continue a prompt, or to score given ids."""

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
    """A prompt and the tokens that have been sampled so far."""

    request: GenerateRequest
    on_done: Callable[[Generation], None]
    arrival: int
    matcher: GrammarMatcher | None = None
    """Constrains it to the requested grammar; None without one, or after a dead end."""
    sequence: SequenceState = field(init=False)
    seed: int = field(init=False)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    cached_tokens: int = 0
    interrupted: bool = False
    """Whether it has lost keys and values, so that a later cache hit is not counted again."""
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
        """The most tokens whose keys and values are needed at once."""
        return len(self.request.prompt_ids) + self.request.max_tokens - 1

    @property
    def tokens_left(self) -> int:
        """How many tokens it may still sample."""
        return self.request.max_tokens - len(self.logprobs)

    def append_sampled(self, tokens: list[int], logprobs: list[float], version: int) -> FinishReason | None:
        """Add sampled tokens; returns the reason if the last of them ends the job."""
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
        """Whether the grammar is complete, where no stop id marks the end."""
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
    """Ids whose log-probabilities are requested, from `start` on. `on_done` gets None if it was cancelled."""

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
        """Drop what has been scored: it was by other weights."""
        self.logprobs.clear()
        self.sequence.first_output = self.start - 1

    def append_scored(self, logprobs: list[float]) -> None:
        self.logprobs += logprobs
        self.sequence.first_output += len(logprobs)

    def finish(self, reason: FinishReason) -> None:
        self.on_done(None if reason == "cancelled" else self.logprobs)


EngineJob = GenerateJob | ScoreJob
