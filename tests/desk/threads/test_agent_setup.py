"""What a thread may still take."""

from gametape.agent.recorder import message_step
from gametape.desk.threads.agent_setup import limits_of
from gametape.desk.threads.thread import Thread, new_thread_id


def test_an_answer_has_a_budget_of_its_own_within_that_of_the_thread() -> None:
    thread = Thread(thread_id=new_thread_id(), title="", model="m", created=0.0, vault="v", store="s", budget_usd=5.0)
    said = message_step(1, "user", "go", key="k")
    assert limits_of(thread, [said], "k", None, 0.5).cost_usd == 0.5
    assert limits_of(thread, [said], "k", None, 9.0).cost_usd == 5.0
    assert limits_of(thread, [said], "k", None, None).cost_usd == 5.0
