"""`gametape coach`: find the turns of a rollout that went wrong, write hints for them, and test the hints."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from gametape.cli.budgets import MaxTurnTokens, limits_from_options
from gametape.cli.model_option import ModelName, choose_model
from gametape.cli.shared import AsJson, Home, JudgeModel, LocalOnly, emit
from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.agent.episode import Episode
    from gametape.coach.coach import Coach
    from gametape.coach.evidence import HintCandidate
    from gametape.core.hint import Hint
    from gametape.core.protocols import Environment
    from gametape.core.trajectory import Trajectory
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.engines.token_conversation import TokenModel
    from gametape.record.loaded_task import LoadedTask
    from gametape.tasks.worlds.spec import WorldSpec
    from gametape.tasks.worlds.world import World

_LONGEST_SEED = 40
"""Digits."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def coach(
    trajectory: Annotated[Path, typer.Argument(help="A finished rollout with token ids, as .json or .jsonl.")],
    task: Annotated[
        str, typer.Option(help="The task of the rollout: a task, a world, a suite that contains it, or worlds:NAME.")
    ],
    model: ModelName = None,
    gates: Annotated[str, typer.Option(help="The gates that a hint has to pass: g0, g1, g2.")] = "g0",
    target: Annotated[int | None, typer.Option(metavar="STEP", help="The step to give --hint for.")] = None,
    hint: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A hint of one line, to test before --target.")
    ] = None,
    judge: JudgeModel = None,
    bisect: Annotated[
        bool,
        typer.Option(
            "--bisect", help="If nothing shows a fault, continue rollouts from earlier turns to find the decisive one."
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Only score the targets that are in the file, against --model.")
    ] = False,
    forks: Annotated[int, typer.Option(min=2, help="The number of forks that g2 plays for a type of hint.")] = 32,
    temperature: Annotated[
        float, typer.Option(min=0.0, max=100.0, help="The temperature of the policy in forks.")
    ] = 1.0,
    max_turn_tokens: MaxTurnTokens = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the trajectory with its targets here instead of in place."),
    ] = None,
    local_only: LocalOnly = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Find the turns of a rollout that went wrong, and give a hint of one line for each: the rule that was broken.

    \b
      g0  with the hint, what the model did becomes less likely
      g1  the most likely turn with the hint is a valid call
      g2  more forks succeed with the hint than without it; all other targets are hinted in both

    Every decision is stored in the trajectory file, with its evidence, under extra.gametape.targets.

    Exits 0 if a hint is worth using (the given one, where one is given), 1 if none is, 2 for bad input, 3 if something
    is missing here.

    \b
    Examples:
      gametape coach rollout.json --task worlds:moderate --model runs/first --gates g0,g1,g2
      gametape coach rollout.json --task worlds:moderate --model runs/later --again
    """

    from gametape.coach.coach import Coach, CoachSettings
    from gametape.coach.hint_store import with_stored_hints
    from gametape.core.errors import BadInput
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.record.trajectory_file import parse_file, require_trajectory

    if (target is None) != (hint is None):
        raise BadInput("--target and --hint belong together")
    if hint is not None and (not hint.strip() or len(hint.splitlines()) != 1):
        raise BadInput("--hint is one line of text")
    parsed = parse_file(trajectory)
    record = require_trajectory(parsed, trajectory)
    settings = CoachSettings(
        gates=_gates(gates),
        forks=forks,
        bisect=bisect,
        temperature=temperature,
        limits=limits_from_options(turns=1_000_000, turn_tokens=max_turn_tokens),
    )
    model = choose_model(model)
    run = _CoachRun(record, task, model, home_directory(home), EgressPolicy(local_only=local_only))
    hint_coach = Coach(settings)
    given = (target, hint) if target is not None and hint is not None else None
    if again and (given or judge or bisect):
        raise BadInput("--again looks for no new targets; leave out --target, --judge and --bisect")
    hints = asyncio.run(run.rescore(hint_coach) if again else run.find_hints(hint_coach, given, judge))
    if not again:
        record = with_stored_hints(record, hints, hint_coach.forks_of(run.name))
    stored = _store_hints(record, hints, out or (None if parsed.is_journal else trajectory), asked_for=out is not None)
    answer = _answer(trajectory, task, model, hints, hint_coach) | {"stored": stored}
    emit(answer, as_json, _show)
    worth_using = any(item.used for item in hints if target is None or item.step == target)
    raise typer.Exit(0 if worth_using else 1)


class _CoachRun:
    """Coaches one trajectory; opens the task and the model for it."""

    def __init__(self, record: "Trajectory", task: str, model: str, home: Path, perimeter: "EgressPolicy") -> None:
        self._record, self._task, self._model = record, task, model
        self._home, self._perimeter = home, perimeter

    @property
    def name(self) -> str:
        return self._record.trajectory_id or self._record.session_id or "trajectory"

    async def find_hints(self, coach: "Coach", given: tuple[int, str] | None, judge: str | None) -> "list[Hint]":
        from gametape.coach.sources.judge import candidates_from_judge
        from gametape.coach.writers.choice import writers_for
        from gametape.train.coach_annotator import leak_checker_for
        from gametape.verify.integrity.llm_judge import open_judge
        from gametape.verify.integrity.trajectory_audit import audit_trajectory

        ask = open_judge(judge) if judge is not None else None
        async with self._opened() as (environment, model):
            episode = _episode_from_record(environment, self._record)
            return await coach.annotate(
                episode,
                model,
                self.name,
                leak_checker_for(environment),
                [_given_candidate(episode, *given)] if given else (),
                [lambda evidence: candidates_from_judge(evidence, ask)] if ask else (),
                writers_for(model),
                audit_trajectory(self._record),
            )

    async def rescore(self, coach: "Coach") -> "list[Hint]":
        """Score the targets of an earlier run against this model."""
        from gametape.coach.hint_store import hints_with_turns, rescore_hints, stored_hints_of
        from gametape.core.errors import BadInput

        stored = hints_with_turns(self._record.steps, stored_hints_of(self._record))
        if not stored:
            raise BadInput("the trajectory has no targets of an earlier run; leave out --again")
        async with self._opened() as (_, model):
            again = await rescore_hints(stored, model, coach.statistics, coach.settings.delta)
        coach.cost.tokens += sum(gate.tokens for scored in again if (gate := scored.hint.gates.g0))
        return [scored.hint for scored in again]

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[tuple[Environment, TokenModel]]":
        from gametape.coach.evidence import agent_turns, ids_match_record
        from gametape.core.errors import BadInput
        from gametape.engines.token_conversation import TokenModel
        from gametape.evals.model_selector import ModelSelector
        from gametape.evals.suite import open_suite

        turns = agent_turns(self._record.steps)
        if not any(turn.step.tokens() for turn in turns):
            raise BadInput("the trajectory has no token ids, and hints are spliced into token ids; record it again")
        matches = _matching_task(self._task, self._home, str((self._record.extra or {}).get("task") or ""))
        async with open_suite(matches, self._home) as (item,):
            selector = ModelSelector.for_items(self._model, self._home, [item], self._perimeter)
            try:
                model = selector.model_for(item, 0)
                if not isinstance(model, TokenModel):
                    raise BadInput(f"{self._model} does not take token ids, so no hint can be spliced for it")
                if not ids_match_record(turns, model.chat_format):
                    raise BadInput(f"the token ids of this trajectory are not those of {self._model}")
                yield item.environment, model
            finally:
                await selector.close()


def _gates(text: str) -> "frozenset[Any]":
    from gametape.core.errors import BadInput

    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if not names or not names <= {"g0", "g1", "g2"}:
        raise BadInput(f"--gates takes g0, g1 and g2, with commas between them, not {text!r}")
    return names


def _matching_task(task: str, home: Path, name: str) -> "list[World] | list[LoadedTask]":
    """The one world or task of a trajectory, out of those that `--task` names."""
    from gametape.core.errors import BadInput
    from gametape.evals.suite import WORLDS_PREFIX, find_tasks
    from gametape.tasks.worlds.spec import preset
    from gametape.tasks.worlds.world import World

    path = Path(task)
    if task.startswith(WORLDS_PREFIX):
        every: list[Any] = [*_world_candidates(preset(task.removeprefix(WORLDS_PREFIX)), name.rpartition("-")[2])]
    elif path.is_file() and path.suffix == ".json":
        every = [_world_in(path)]
    else:
        every = list(find_tasks(task, home))
    named = [item for item in every if (item.name if isinstance(item, World) else item.task.name) == name]
    matching = named or (every if not name else [])
    if len(matching) != 1:
        raise BadInput(f"{task}: the trajectory is of {name or 'a task without a name'}, which is not among them")
    return matching


def _world_candidates(spec: "WorldSpec", seed: str) -> "Iterator[World]":
    """The worlds of a preset and a seed, one for each split."""
    from gametape.tasks.worlds.spec import RuleSplit
    from gametape.tasks.worlds.world import World

    if seed.isdecimal() and seed.isascii() and len(seed) <= _LONGEST_SEED:
        for split in get_args(RuleSplit):
            yield World(spec.model_copy(update={"seed": int(seed), "split": split}))


def _world_in(path: Path) -> "World":
    from gametape.core.errors import BadInput
    from gametape.tasks.worlds.spec import WorldSpec
    from gametape.tasks.worlds.world import World

    try:
        return World(WorldSpec.model_validate_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is not the file of a world: {str(error).splitlines()[0]}") from error


def _episode_from_record(environment: "Environment", record: "Trajectory") -> "Episode":
    from pydantic import ValidationError

    from gametape.agent.episode import Episode
    from gametape.agent.limits import RolloutEnd
    from gametape.agent.recorded_steps import usage_from_steps
    from gametape.core.environment import EpisodeScore
    from gametape.core.errors import BadInput
    from gametape.core.validation import problems_from
    from gametape.core.verdict import Verdict

    data = record.extra or {}
    try:
        verdict = Verdict.model_validate(data["verdict"]) if data.get("verdict") else None
    except ValidationError as error:
        raise BadInput(f"extra.verdict: {problems_from(error, data['verdict'])[0]}") from error
    score = None
    if verdict is not None:
        score = EpisodeScore(verdict.passed, verdict.reward, verdict=verdict)
    elif record.outcome in ("passed", "failed", "limit"):
        score = EpisodeScore(record.outcome == "passed", float(record.outcome == "passed"))
    return Episode(
        environment, record.steps, RolloutEnd(None, str(data.get("reason", ""))), score, usage_from_steps(record.steps)
    )


def _given_candidate(episode: "Episode", step: int, text: str) -> "HintCandidate":
    from gametape.coach.evidence import HintCandidate, collect_evidence
    from gametape.core.errors import BadInput

    turn = collect_evidence(episode).turn_at_step(step)
    if turn is None or turn.step.tokens() is None:
        raise BadInput(f"--target {step}: not a turn of the agent with token ids on record")
    words = " ".join(text.split())
    return HintCandidate(
        step, turn.number, "given", f"given: {words.lower()}", words, "given by a person", step, author="person"
    )


def _store_hints(record: "Trajectory", hints: "list[Hint]", path: Path | None, asked_for: bool) -> str | None:
    """Write the trajectory with its targets, and return its path. A journal, and a file that may not be written, stay
    as they are unless another name was given."""
    from gametape.coach.hint_store import with_stored_hints
    from gametape.core.errors import BadInput
    from gametape.record.trajectory_file import save_trajectory

    if path is None:
        return None
    try:
        save_trajectory(path, with_stored_hints(record, hints))
    except BadInput as error:
        if asked_for:
            raise
        typer.echo(f"targets not stored: {error}", err=True)
        return None
    return str(path.absolute())


def _answer(path: Path, task: str, model: str, hints: "list[Hint]", coach: "Coach") -> dict[str, Any]:
    return {
        "trajectory": str(path.absolute()),
        "task": task,
        "model": model,
        "targets": [_target(hint) for hint in hints],
        "forks": coach.cost.forks,
        "tokens": coach.cost.tokens,
        "types": coach.statistics.to_dict(),
        "authors": {name: vars(counts) for name, counts in sorted(coach.authors.items())},
    }


def _target(hint: "Hint") -> dict[str, Any]:
    data = hint.model_dump(mode="json", exclude={"schema_version", "trajectory_id", "text", "hint_ids", "gates"})
    gates = hint.gates.model_dump(mode="json", exclude_none=True)
    return data | {"hint": hint.text, "hint_tokens": len(hint.hint_ids), "gates": gates}


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    from gametape.watch.text_features import one_line

    console = Console(highlight=False, soft_wrap=True)
    for data in answer["targets"]:
        console.print(Text(f"step {data['step']}: {one_line(data['evidence'])}"))
        console.print(Text(f"  {one_line(data['hint'])}", style="bold" if data["used"] else "dim"))
        for name, gate in data["gates"].items():
            passed = "passed" if gate["passed"] else "failed"
            console.print(Text(f"  {name} {passed} ({gate['value']:.2f}) {one_line(gate['detail'])}", style="dim"))
        if data["refused"]:
            console.print(Text(f"  refused: {one_line(data['refused'])}", style="dim"))
    used = sum(data["used"] for data in answer["targets"])
    cost = f"{answer['forks']} forks, {answer['tokens']:,} tokens"
    console.print(Text(f"{len(answer['targets'])} targets, {used} to be used ({cost})"))
