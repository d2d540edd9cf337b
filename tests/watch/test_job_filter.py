"""Long jobs that get on are told from loops that do not, and from everyday work."""

import random

from gametape.watch.job_filter import JobFilter, Work
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.observed_step import ObservedAction, ObservedStep
from tests.watch.logs import healthy, sentence, word


def did(tool: str, arguments: object, result: str = "ok", text: str = "") -> ObservedStep:
    return ObservedStep(text, (ObservedAction.of(tool, arguments),), result)


def last(steps: list[ObservedStep]) -> Work:
    jobs = JobFilter()
    return [jobs.work_of(step) for step in steps][-1]


def test_the_same_to_one_file_after_the_other_is_a_job() -> None:
    rng = random.Random(0)
    rename = [did("edit", {"path": f"src/{word(rng)}_{at}.py", "old": "a", "new": "b"}) for at in range(20)]
    assert last(rename) is Work.JOB
    assert last(rename[:1] * 20) is Work.OTHER


def test_a_number_that_goes_on_is_a_job_and_one_that_stands_is_none() -> None:
    assert last([did("shell", {"command": f"import --record {at}"}) for at in range(20)]) is Work.JOB
    assert last([did("shell", {"command": "make"}, "3 left") for _ in range(20)]) is Work.OTHER


def test_waiting_is_a_job_for_a_while() -> None:
    wait = did("shell", {"command": "sleep 9; queue status"}, "pending")
    assert last([wait] * 20) is Work.JOB
    assert last([wait] * 60) is Work.OTHER


def test_new_changes_to_one_file_are_a_series() -> None:
    rng = random.Random(0)
    steps = [did("edit", {"path": "src/a.py", "old": word(rng), "new": word(rng)}) for _ in range(20)]
    assert last(steps) is Work.SERIES


def test_no_job_lasts_for_ever() -> None:
    rng = random.Random(0)
    assert last([did("edit", {"path": f"src/{word(rng)}{at}.py"}) for at in range(300)]) is Work.OTHER


def test_a_rename_over_eighty_files_and_a_day_on_one_file_raise_no_alarm() -> None:
    rng = random.Random(1)
    stream = healthy(3)
    steps = [next(stream) for _ in range(300)]
    for at in range(80):
        path = f"src/{word(rng)}/{word(rng)}_{at}.py"
        steps.append(did("edit", {"path": path, "old": "one", "new": "two"}, "1 replaced", f"Renaming one in {path}."))
    steps += [next(stream) for _ in range(100)]
    for at in range(150):
        change = did("edit", {"path": "src/core.py", "old": word(rng), "new": sentence(rng)})
        test = did("test", {"path": "tests/test_core.py"}, f"{at % 3} failed in {rng.random():.2f}s")
        steps.append(ObservedStep(sentence(rng), *((change if at % 3 else test).actions,), result=f"ok {at % 3}"))
    watch = MonitorSet()
    assert [(number, alarm.monitor) for number, step in enumerate(steps) for alarm in watch.update(step)] == []
