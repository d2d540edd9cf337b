import json

from gametape.tasks.mining.summary import MiningSummary


def test_seconds_per_candidate_are_those_of_this_run() -> None:
    summary = MiningSummary("one", {}, trial_seconds=3.0, candidates_tried=4)
    assert summary.seconds_per_candidate == 0.75
    assert MiningSummary("one", {}).seconds_per_candidate is None


def test_reasons_are_counted_most_frequent_first() -> None:
    records = [json.loads(f'{{"reason": "{reason}"}}') for reason in ("leak", "masked", "leak")]
    assert [*MiningSummary("one", {}, [*records, {"task": "x"}]).rejected.items()] == [("leak", 2), ("masked", 1)]
