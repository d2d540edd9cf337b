"""Budgets have the same names and the same defaults at every verb."""

from pathlib import Path
from typing import Any

import pytest
import typer.main

from gametape.agent.limits import RolloutLimits
from gametape.cli import coach, eval, goal, solve, thread
from gametape.cli.budgets import limits_from_options
from tests.cli.command import run
from tests.desk.goals.shop import BY_EXIT_CODE, DONE, lay, script

FAMILY = {"--max-turns", "--max-turn-tokens", "--max-tokens", "--max-cost", "--max-seconds"}


def _options(app: typer.Typer, name: str = "") -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    command = command.commands[name] if name else command
    return {option: parameter for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize(
    ("app", "name"),
    [(solve.app, ""), (eval.app, ""), (goal.app, "run"), (thread.app, "new"), (thread.app, "say")],
    ids=["solve", "eval", "goal run", "thread new", "thread say"],
)
def test_every_verb_has_the_family_and_no_default_of_its_own(app: typer.Typer, name: str) -> None:
    options = _options(app, name)
    assert options.keys() >= FAMILY
    assert {options[option].default for option in FAMILY} == {None}
    for other, one in (
        ("--budget-tokens", "--max-tokens"),
        ("--budget-usd", "--max-cost"),
        ("--deadline", "--max-seconds"),
    ):
        assert options[other] is options[one], "the same option under an older name"


def test_the_defaults_are_those_of_the_limits() -> None:
    assert limits_from_options() == RolloutLimits()
    assert RolloutLimits().turn_tokens >= 16_384
    assert _options(coach.app)["--max-turn-tokens"].default is None
    given = limits_from_options(turns=3, turn_tokens=4, tokens=5, cost=0.5, seconds=6.0, tool_seconds=7.0)
    assert given == RolloutLimits(turns=3, turn_tokens=4, tokens=5, cost_usd=0.5, wall_seconds=6.0, tool_seconds=7.0)


def test_the_options_of_a_goal_arrive_under_either_name(tmp_path: Path) -> None:
    model = script(tmp_path / "turns.jsonl", [DONE])
    words = ("goal", "run", "--workspace", lay(tmp_path / "workspace"), "--success", BY_EXIT_CODE, "--model", model)
    more = (
        "--budget-tokens",
        "3",
        "--deadline",
        "900",
        "--max-cost",
        "2",
        "--max-turns",
        "7",
        "--home",
        tmp_path / "home",
    )
    ran = run(*words, *more, "--json")
    assert (ran.code, ran.answer["reason"], len(ran.answer["attempts"])) == (1, "budget", 1)
    asked = run("goal", "show", ran.answer["goal_id"], "--json", "--home", tmp_path / "home").answer["goal"]
    assert (asked["budget_tokens"], asked["budget_usd"], asked["max_turns"]) == (3, 2.0, 7)
    assert asked["deadline"] == pytest.approx(asked["created"] + 900)


@pytest.mark.parametrize("given", ["--max-tokens 0", "--max-cost inf", "--max-seconds nan", "--max-turns x"])
def test_what_is_no_budget_is_refused(tmp_path: Path, given: str) -> None:
    ran = run("thread", "new", "--model", "scripted:x.jsonl", *given.split(), "--home", tmp_path / "home")
    assert ran.code == 2
    assert given.split(maxsplit=1)[0] in ran.err
