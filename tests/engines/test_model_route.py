"""A route by name, opened as the verbs open it: the choice by measured odds, the egress policy, a resumed context."""

import asyncio
from pathlib import Path

import pytest

from gametape.agent.events import RolloutEvent
from gametape.agent.recorder import message_step, turn_step
from gametape.agent.replay import replay_conversation
from gametape.agent.tool_router import RoutedTurn
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.engines.conversation import Reply
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import resolve_model
from gametape.engines.model_route import split_route
from gametape.engines.router import Router
from gametape.record.model_outcomes import ModelOutcome, record_outcomes


@pytest.fixture
def names(tmp_path: Path) -> tuple[str, str]:
    for name in ("local", "frontier"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"text": "{name}"}}\n')
    return f"scripted:{tmp_path / 'local.jsonl'}", f"scripted:{tmp_path / 'frontier.jsonl'}"


def route(home: Path, names: tuple[str, str], egress: EgressPolicy | None = None) -> Router:
    router = resolve_model(",".join(names), home, egress)
    assert isinstance(router, Router)
    return router


def outcomes(home: Path, model: str, passed: int, failed: int, cost: float = 0.0) -> None:
    for number in range(passed + failed):
        outcome = ModelOutcome(key=str(number), model=model, passed=number < passed, cost_usd=cost)
        record_outcomes(home, [outcome])


def said(name: str, home: Path, prompt: str) -> Reply:
    """A real turn of one of the models."""
    conversation = resolve_model(name, home).start_conversation(Sampling())
    conversation.begin("s", [], prompt)
    return asyncio.run(conversation.ask(100))


def test_the_measured_odds_move_the_choice(tmp_path: Path, names: tuple[str, str]) -> None:
    local, frontier = names
    assert route(tmp_path, names).choose().model.name == local
    outcomes(tmp_path, local, passed=0, failed=20)
    choice = route(tmp_path, names).choose()
    assert (choice.model.name, "0.05, below 0.1" in choice.why) == (frontier, True)
    outcomes(tmp_path, local, passed=20, failed=0)
    assert route(tmp_path, names).choose().model.name == local


def test_the_recorded_costs_move_the_choice(tmp_path: Path, names: tuple[str, str]) -> None:
    local, frontier = names
    outcomes(tmp_path, frontier, passed=4, failed=0, cost=1.0)
    outcomes(tmp_path, local, passed=1, failed=1, cost=0.2)
    assert route(tmp_path, names).choose().model.name == local
    outcomes(tmp_path, local, passed=1, failed=1, cost=0.6)
    choice = route(tmp_path, names).choose()
    assert choice.model.name == frontier
    assert "cost $0.6000 against $1.0000: not worth a try first" in choice.why


def test_local_only_leaves_a_frontier_elsewhere_out(tmp_path: Path, names: tuple[str, str]) -> None:
    router = route(tmp_path, (names[0], "openai:m@https://192.0.2.1/v1"), EgressPolicy(local_only=True))
    assert (router.choose().model.name, router.local) == (names[0], True)
    assert router.choose().why == "the only model that may be used here"
    assert not router.start_conversation(Sampling()).escalate()


def test_local_only_is_no_excuse_for_the_first_model(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(Exception, match="is not this machine"):
        route(tmp_path, ("openai:m@https://192.0.2.1/v1", names[0]), EgressPolicy(local_only=True))


def test_a_comma_in_a_path_is_no_route(tmp_path: Path) -> None:
    script = tmp_path / "a,b.jsonl"
    script.write_text('{"text": "x"}')
    assert split_route(f"scripted:{script}") == [f"scripted:{script}"]
    assert resolve_model(f"scripted:{script}", tmp_path).name == f"scripted:{script}"


def test_two_names_of_one_model_are_refused(
    tmp_path: Path, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[models.near]\nmodel = '{names[0]}'")
    monkeypatch.setenv("GAMETAPE_CONFIG", str(file))
    with pytest.raises(BadInput, match="both are scripted:"):
        route(tmp_path, ("near", names[0]))


@pytest.mark.parametrize("answered", [True, False])
def test_a_resumed_rollout_goes_on_with_the_model_that_it_was_handed_to(
    tmp_path: Path, names: tuple[str, str], answered: bool
) -> None:
    """Also where it was killed before that model had said anything, and whatever the odds are by now."""
    local, frontier = names
    event = RolloutEvent("escalation", "attempt 1 did not reach the goal").to_dict()
    steps = [
        message_step(1, "system", "s"),
        message_step(2, "user", "u"),
        turn_step(3, said(local, tmp_path, "u"), RoutedTurn(), []),
        message_step(4, "user", "again", compacted=True, events=[event]),
    ]
    if answered:
        steps.append(turn_step(5, said(frontier, tmp_path, "again"), RoutedTurn(), []))
        steps.append(message_step(6, "user", "go on"))
    conversation = route(tmp_path, names).start_conversation(Sampling())
    replay_conversation(conversation, steps, [])
    assert asyncio.run(conversation.ask(100)).model_name == frontier
    conversation.begin("s", [], "compacted")
    assert asyncio.run(conversation.ask(100)).model_name == frontier


def test_a_context_that_was_not_handed_over_stays_with_its_model(tmp_path: Path, names: tuple[str, str]) -> None:
    local, _ = names
    steps = [
        message_step(1, "system", "s"),
        message_step(2, "user", "u"),
        turn_step(3, said(local, tmp_path, "u"), RoutedTurn(), []),
        message_step(4, "user", "go on"),
    ]
    outcomes(tmp_path, local, passed=0, failed=20)
    conversation = route(tmp_path, names).start_conversation(Sampling())
    replay_conversation(conversation, steps, [])
    assert asyncio.run(conversation.ask(100)).model_name == local
