"""What a thread may still take."""

from gametape.agent.recording import said_step
from gametape.desk.threads.bounds import limits_of
from gametape.desk.threads.thread import Thread, new_id


def test_an_answer_has_a_budget_of_its_own_within_that_of_the_thread() -> None:
    thread = Thread(thread_id=new_id(), title="", model="m", created=0.0, vault="v", store="s", budget_usd=5.0)
    said = said_step(1, "user", "go", key="k")
    assert limits_of(thread, [said], "k", None, 0.5).cost_usd == 0.5
    assert limits_of(thread, [said], "k", None, 9.0).cost_usd == 5.0
    assert limits_of(thread, [said], "k", None, None).cost_usd == 5.0
