"""The annotator of the arms with hints: a coach looks at the failures of finished groups, and its hints become targets
of the loss."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.agent.task_environment import TaskEnvironment
from gametape.coach.coach import Coach, CoachSettings
from gametape.coach.hints import CHECK_FIRST, NO_LEAK_CHECK, LeakChecker, leak_checker_from_files
from gametape.coach.span_scores import SpanQuery, SpanScores, sample_continuation
from gametape.coach.statistics import AuthorStatistics, HintStatistics
from gametape.coach.writers.choice import worded_for, writers_for
from gametape.core.config import RunConfig, TTFConfig
from gametape.core.hint import Hint
from gametape.core.messages import Generation, Sampling
from gametape.core.protocols import Environment
from gametape.core.seeds import seed_for
from gametape.core.token_segments import split_segments
from gametape.engines.chat_formats.protocol import insert_hint
from gametape.engines.token_conversation import TokenModel
from gametape.record.source_tree import SourceTree
from gametape.tasks.worlds.experts import perfect_expert, script_episode
from gametape.tasks.worlds.world import World
from gametape.train.rollouts import (
    AnnotatedEpisode,
    DistillTarget,
    HintCounts,
    RolloutGroup,
    TargetMetrics,
    distill_target_at,
)

_REMEMBERED = 64


class HintControls:
    """Passes hints on as they are, or spoils the share of them that the configuration asks for."""

    def __init__(self, config: TTFConfig, seed: int, neutral: str = CHECK_FIRST) -> None:
        """`neutral` is a line that says nothing, in the words of the policy's hints."""
        self._config, self._seed, self._neutral = config, seed, neutral
        self.texts: dict[str, str] = {}
        """By type: earlier hints, for the control that uses them at the wrong turn."""

    def apply(self, hint: Hint, episode: Episode) -> Hint:
        """The hint that the control uses instead; the record keeps the original one."""
        control = self._config.control
        rng = Random(seed_for(self._seed, "control", hint.trajectory_id, hint.step))
        others = [text for kind, text in self.texts.items() if kind != hint.type]
        if len(self.texts) < _REMEMBERED:
            self.texts[hint.type] = hint.text
        if control == "none" or rng.random() >= self._config.control_share:
            return hint
        if control == "elsewhere":
            return _moved(hint, episode, rng)
        text = rng.choice(others) if control == "shuffled" and others else self._neutral
        return hint.model_copy(update={"text": text})


def _moved(hint: Hint, episode: Episode, rng: Random) -> Hint:
    """To another turn of the rollout, where it says nothing about what was done."""
    turns = [(step.step_id, tokens) for step in episode.steps if step.source == "agent" and (tokens := step.tokens())]
    step, tokens = rng.choice([turn for turn in turns if turn[0] != hint.step] or turns)
    return hint.model_copy(update={"step": step, "span": (0, len(tokens.completion_ids))})


def leak_checker_for(environment: Environment) -> LeakChecker:
    """Files of the task, and the prompts and tools that the agent reads, are no leak."""
    if isinstance(environment, World):
        return LeakChecker(
            calls=tuple(frozenset(act.action.values) for act in script_episode(environment, perfect_expert))
        )
    if not isinstance(environment, TaskEnvironment) or environment.task.reference is None:
        return NO_LEAK_CHECK
    loaded_task = environment.task
    solution = environment.task.reference.under(loaded_task.task.source_paths)
    tools = json.dumps([tool.definition for tool in environment.tools()])
    return _of_task(solution, loaded_task.start, (environment.system_prompt, environment.user_prompt, tools))


@lru_cache(maxsize=64)
def _of_task(solution: SourceTree, start: SourceTree, read: tuple[str, ...]) -> LeakChecker:
    """Files that are as they were at the start have nothing to hide, and in a mined package nearly all of them are."""
    written = [path for path in solution if path not in start or solution.text(path) != start.text(path)]
    return leak_checker_from_files(map(solution.text, written), [*map(start.text, start), *read])


def _count_hints(hints: Iterable[Hint]) -> dict[str, HintCounts]:
    counts: dict[str, HintCounts] = {}
    for hint in hints:
        counts[hint.author] = counts.get(hint.author, HintCounts()) + HintCounts(1, bool(hint.refused), hint.used)
    return counts


class CoachAnnotator:
    """An `Annotator`. It looks at some failures of each group, and counts the tokens that this takes. An arm that makes
    something else of what the coach finds overrides `targets_for`."""

    reads_targets: ClassVar[bool] = True
    """Whether the gaps of hints may be measured here; arms that do not distil have no use for them."""

    def __init__(
        self,
        config: RunConfig,
        model: TokenModel,
        limits: RolloutLimits,
        gated: bool,
        score_group: Callable[[RolloutGroup], Mapping[int, float]],
    ) -> None:
        gates, rl = config.gates, config.rl
        settings = CoachSettings(
            gates=frozenset(("g0", "g1", "g2")) if gated else frozenset(),
            delta=gates.delta,
            forks=gates.min_forks,
            confidence=gates.min_posterior,
            temperature=rl.temperature,
            limits=limits,
            reads_targets=self.reads_targets and not self._learner_reads(config),
        )
        self._coach, self._writers = Coach(settings), writers_for(model, config.ttf.judge)
        self.model, self._ttf, self._score_group = model, config.ttf, score_group
        self.sampling = Sampling(temperature=rl.temperature, seed=config.seed)
        self._turn_tokens, self._seed = limits.turn_tokens, config.seed
        self._controls = HintControls(config.ttf, config.seed, worded_for(model.chat_format, CHECK_FIRST))
        self._lock = asyncio.Lock()
        self.last_annotated: AnnotatedEpisode | None = None
        """The last one that has a target."""

    @staticmethod
    def _learner_reads(config: RunConfig) -> bool:
        """It reads what the control made of hints, which says nothing of their type; and it is far from a coach that
        works beside another process."""
        return config.ttf.gap_reader == "learner" and config.ttf.control == "none" and not config.rl.asynchronous

    async def annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:
        """One group at a time, so that each is charged what it took."""
        async with self._lock:
            return await self._annotate_group(group, episodes)

    async def _annotate_group(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:
        if group.kind == "mixed" and not self._ttf.annotate_mixed_groups:
            return group
        failed = [at for at, result in enumerate(group.results) if not (result.passed or result.infra_error)]
        annotated = failed[: self._ttf.annotated_per_group]
        before = self._coach.cost.tokens
        names = {at: f"d{group.request.number:08}.{at:03}" for at in annotated}
        leaks = leak_checker_for(episodes[0].environment)
        annotations = await asyncio.gather(
            *(
                self._coach.annotate(episodes[at], self.model, name, leaks, writers=self._writers)
                for at, name in names.items()
            )
        )
        hints = dict(zip(annotated, annotations, strict=True))
        targets = [target for at in annotated for target in self.targets_for(episodes[at], hints[at], names[at], at)]
        sampled = 0
        if self._ttf.objective == "resample":
            targets, sampled = await self._resampled(targets, episodes)
        if targets:
            at = targets[0].rollout_index
            advantage = self._score_group(group).get(at, 0.0)
            self.last_annotated = AnnotatedEpisode(
                names[at], episodes[at], hints[at], advantage, forks=self._coach.forks_of(names[at])
            )
        return replace(
            group,
            targets=tuple(targets),
            coach_tokens=self._coach.cost.tokens - before + sampled,
            hint_counts=_count_hints(hint for annotated_hints in annotations for hint in annotated_hints),
        )

    def targets_for(self, episode: Episode, hints: Sequence[Hint], name: str, index: int) -> list[DistillTarget]:
        """The targets of one rollout, from all hints that the coach has for it."""
        used = self.controlled_hints(episode, hints)
        if 0 < self._ttf.targets_per_rollout < len(used):
            drawn = Random(seed_for(self._seed, "targets", name)).sample(used, self._ttf.targets_per_rollout)
            used = [hint for hint in used if hint in drawn]
        return [self.distill_target(episode, hint, name, index) for hint in used]

    def controlled_hints(self, episode: Episode, hints: Sequence[Hint]) -> list[Hint]:
        """Those that are used, as the control has them."""
        return [self._controls.apply(hint, episode) for hint in hints if hint.used]

    def record_gaps(self, metrics: Sequence[TargetMetrics]) -> None:
        """What the learner found when it read targets, where the coach does not read them itself."""
        if not self._coach.settings.reads_targets:
            for target in metrics:
                scores = SpanScores(target.student, target.teacher, 0)
                self._coach.statistics.for_type(target.kind).record_gap(scores.gap)

    def state(self) -> dict[str, Any]:
        authors = {name: asdict(counts) for name, counts in self._coach.authors.items()}
        return {
            "statistics": self._coach.statistics.to_dict(),
            "authors": authors,
            "controls": dict(self._controls.texts),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._coach.statistics = HintStatistics.from_dict(state["statistics"])
        self._coach.authors = {name: AuthorStatistics(**counts) for name, counts in state.get("authors", {}).items()}
        self._controls.texts = dict(state["controls"])

    def distill_target(self, episode: Episode, hint: Hint, name: str, index: int) -> DistillTarget:
        step = next(step for step in episode.steps if step.step_id == hint.step)
        tokens = step.tokens()
        assert tokens is not None
        prompt = insert_hint(self.model.chat_format, tokens.prompt_ids, hint.text)
        target = distill_target_at(split_segments(episode.steps), hint.step, prompt, hint.type, hint.text)
        learn = self._ttf.objective
        weight = 1.0 if learn == "kl" else self._ttf.weight
        target = replace(
            target, trajectory_id=name, weight=weight, learn=learn, rollout_index=index, author=hint.author
        )
        first, stop = hint.span
        if learn == "resample" or (first, stop) == (0, target.length):
            return target
        prefix = tokens.completion_ids[:first]
        return replace(target, start=target.start + first, length=stop - first, hint_ids=(*target.hint_ids, *prefix))

    async def _resampled(
        self, targets: Sequence[DistillTarget], episodes: Sequence[Episode]
    ) -> tuple[list[DistillTarget], int]:
        """The targets with what the policy samples at each after the hint; and how many tokens that took."""
        sampled = await asyncio.gather(*(self._resample(target, episodes[target.rollout_index]) for target in targets))
        usages = [generation.usage for generation in sampled]
        return (
            [
                replace(target, resampled=tuple(generation.completion_ids))
                for target, generation in zip(targets, sampled, strict=True)
            ],
            sum(usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens for usage in usages),
        )

    async def _resample(self, target: DistillTarget, episode: Episode) -> Generation:
        turns = [step for step in episode.steps if step.source == "agent"]
        number = next(at for at, step in enumerate(turns, start=1) if step.step_id == target.step)
        tokens = turns[number - 1].tokens()
        assert tokens is not None
        whole = (0, len(tokens.completion_ids))
        query = SpanQuery(tokens, number, whole, f"resample/{target.trajectory_id}/{target.step}")
        return await sample_continuation(self.model, query, target.text, self._turn_tokens, False, self.sampling)
