import copy
import random
from typing import Any

from gametape.coach.gates import ForkOutcomes, ForkTrial
from gametape.coach.posterior import SuccessCount
from gametape.coach.statistics import HintStatistics, appended
from gametape.core.config import RunConfig
from gametape.train.algorithms import make_algorithm
from gametape.train.annotator_states import add_news


def test_counts_add_up_lists_grow_and_of_anything_else_the_latest_counts() -> None:
    known = {"count": 5, "done": [1, 2], "by": {"a": 1}, "text": "old", "on": False}
    before = {"count": 2, "done": [1], "by": {"a": 1}, "text": "old", "on": False}
    after = {"count": 3, "done": [1, 7], "by": {"a": 2, "b": 4}, "text": "new", "on": True}
    assert add_news(known, before, after) == {
        "count": 6,
        "done": [1, 2, 7],
        "by": {"a": 2, "b": 4},
        "text": "new",
        "on": True,
    }


def test_without_news_all_stays() -> None:
    known = {"count": 5, "done": [1, 2], "text": "later"}
    assert add_news(known, {"count": 2, "done": [9], "text": "x"}, {"count": 2, "done": [9], "text": "x"}) == known


def test_what_one_begins_with_is_news() -> None:
    assert add_news({}, {}, {"done": [3], "count": 1}) == {"done": [3], "count": 1}


def test_several_learn_together_what_one_would_have_learned() -> None:
    dice = random.Random(1)
    known: dict[str, Any] = {}
    states = [{"done": list[int](), "count": 0} for _ in range(3)]
    for number in range(100):
        state = dice.choice(states)
        before = copy.deepcopy(state)
        state["done"].append(number)  # type: ignore[attr-defined]
        state["count"] += 1  # type: ignore[operator]
        known = add_news(known, before if before["count"] else {}, state)
    assert known == {"done": list(range(100)), "count": 100}


def test_of_a_list_that_forgets_its_oldest_the_news_is_at_its_end() -> None:
    assert appended([1, 2, 3], [2, 3, 4]) == [4]
    assert appended([1, 2, 3], [1, 2, 3]) == []
    assert appended([], [5]) == [5]
    assert appended([1, 2], [8, 9]) == [8, 9]


def statistics(located: int, gaps: list[float], trials: int = 0, tried_by: int = 0) -> dict[str, Any]:
    found = HintStatistics()
    counts = found.for_type("rule")
    counts.located, counts.gaps, counts.tried_by = located, gaps, tried_by
    counts.trial = ForkTrial(ForkOutcomes(success=SuccessCount(0, trials)))
    return {"statistics": found.to_dict(), "authors": {"rules": {"written": located}}, "controls": {}}


def test_the_statistics_of_hints_are_put_together_by_what_they_mean() -> None:
    arm = make_algorithm(RunConfig.model_validate({"arm": "rlvr_ttf", "tasks": "worlds:easy"}))
    known = statistics(10, [1.0, 2.0], trials=32, tried_by=7)
    together = arm.combine_annotator_states(known, statistics(2, [0.5]), statistics(3, [0.5, 3.0], 16, tried_by=5))
    rule = together["statistics"]["rule"]
    assert (rule["located"], rule["gaps"], rule["tried_by"], rule["gap"]) == (11, [1.0, 2.0, 3.0], 7, 2.0)
    assert rule["trial"]["plain"]["success"]["trials"] == 32
    assert together["authors"] == {"rules": {"written": 11}}
    later = arm.combine_annotator_states(together, statistics(3, [0.5, 3.0]), statistics(3, [0.5, 3.0], 8, tried_by=9))
    assert later["statistics"]["rule"]["tried_by"] == 9
    assert later["statistics"]["rule"]["trial"]["plain"]["success"]["trials"] == 8
    assert arm.combine_annotator_states({}, {}, known)["statistics"]["rule"]["located"] == 10
