"""What a thread may still take."""

from gametape.agent.limits import RolloutLimits, RolloutUsage
from gametape.desk.threads.session import ThreadMessage, answer_limits
from gametape.desk.threads.thread import Thread, new_thread_id


def _thread(**limits: float) -> Thread:
    return Thread.model_validate(
        {"thread_id": new_thread_id(), "model": "m", "created": 0.0, "vault": "v", "store": "s", **limits}
    )


def test_an_answer_has_a_budget_of_its_own_within_that_of_the_thread() -> None:
    thread, before = _thread(budget_usd=5.0), RolloutUsage()
    assert answer_limits(thread, ThreadMessage("go", "k", budget_usd=0.5), before).cost_usd == 0.5
    assert answer_limits(thread, ThreadMessage("go", "k", budget_usd=9.0), before).cost_usd == 5.0
    assert answer_limits(thread, ThreadMessage("go", "k"), before).cost_usd == 5.0


def test_the_limits_of_an_answer_begin_after_what_was_used_before_it() -> None:
    before = RolloutUsage(turns=7, prompt_tokens=90, completion_tokens=10, earlier_seconds=30.0)
    message = ThreadMessage("go", "k", budget_tokens=1000, max_turns=3, max_turn_tokens=400, max_seconds=60.0)
    limits = answer_limits(_thread(max_turns=20), message, before)
    assert (limits.turns, limits.turn_tokens, limits.tokens, limits.wall_seconds) == (10, 400, 1100, 90.0)
    usual = answer_limits(_thread(max_turns=20), ThreadMessage("go", "k"), before)
    assert (usual.turns, usual.turn_tokens, usual.tokens) == (27, RolloutLimits().turn_tokens, None)
