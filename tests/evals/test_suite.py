"""What a suite's name stands for, and tasks under standing constraints."""

import asyncio
from pathlib import Path

import pytest

from gametape.agent.constraints import Constraints
from gametape.core.errors import BadInput
from gametape.engines.scripted import scripted_model
from gametape.evals.attempt import EvalAttempt
from gametape.evals.mistakes import breaches_by_step
from gametape.evals.runner import EvalSettings, NullAttemptStore, evaluate
from gametape.evals.suite import SuiteItem, find_tasks, item_from_world, open_suite, suite_digest
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.katas.generator import TEMPLATES_BY_FAMILY, kata_family, make_katas
from gametape.tasks.worlds.spec import preset
from gametape.tasks.worlds.suite import make_suite
from gametape.tasks.worlds.world import World

from ..agent.bench import DONE, runs
from ..tasks.made import split_subject, written


def names(suite: Path | str, home: Path, limit: int | None = None) -> list[str]:
    return [one.name if isinstance(one, World) else one.task.name for one in find_tasks(str(suite), home, limit)]


def test_every_kind_of_suite_is_found(tmp_path: Path) -> None:
    katas = make_katas(tmp_path / "deep" / "katas", 3, seed=1)
    every = names(tmp_path / "deep", tmp_path)
    assert every == ["katas/arithmetic-1-0000", "katas/strings-1-0001", "katas/lists-1-0002"]
    assert names(tmp_path / "deep", tmp_path, limit=2) == every[:2]
    assert len(names(katas[0], tmp_path)) == 1
    listed = tmp_path / "list.txt"
    listed.write_text("deep/katas/0001-strings\n\n  deep/katas/0000-arithmetic \n")
    assert names(listed, tmp_path) == ["katas/strings-1-0001", "katas/arithmetic-1-0000"]
    listed.write_text("deep/katas/0001-strings\nnowhere\n")
    with pytest.raises(BadInput, match=r"list\.txt, line 2: nowhere is no task directory"):
        find_tasks(str(listed), tmp_path)
    make_suite(tmp_path / "worlds", preset("easy"), 4)
    assert len(names(tmp_path / "worlds", tmp_path)) == 4
    assert len(names("worlds:easy", tmp_path)) == 100
    assert item_from_world(World(preset("easy"))).horizon == 8


def test_what_is_no_suite_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("a", "b"):
        (tmp_path / "twice" / name).mkdir(parents=True)
        written(tmp_path / "twice" / name)
    (tmp_path / "wrong.txt").write_text("empty\n")
    for suite, says in (
        ("empty", "no task in it"),
        ("bytes", "not UTF-8"),
        ("twice", "2 tasks in it are named made/add"),
        ("wrong.txt", "no task.toml"),
        ("nowhere", "no such suite"),
    ):
        with pytest.raises(BadInput, match=says):
            find_tasks(str(tmp_path / suite), tmp_path)
    with pytest.raises(BadInput, match="no such worlds"):
        find_tasks("worlds:nowhere", tmp_path)


class Script:
    def model_for(self, item: SuiteItem, number: int) -> object:
        return scripted_model(
            "x", [runs("echo > tests/test_add.py"), runs("rm tests/test_add.py; ls"), runs("ls"), DONE]
        )


def test_breaches_of_standing_constraints_are_counted_by_step(tmp_path: Path) -> None:
    tasks: list[LoadedTask] = [split_subject()]

    async def run() -> list[EvalAttempt]:
        async with open_suite(tasks, tmp_path, constraints=Constraints(unwritable=["tests"])) as items:
            assert "tests" in items[0].environment.system_prompt
            return await evaluate(items, Script(), EvalSettings(), NullAttemptStore())  # type: ignore[arg-type]

    (attempt,) = asyncio.run(run())
    assert breaches_by_step([attempt]) == {1: 1, 2: 1}
    assert [turn.failed for turn in attempt.turns] == [True, True, False, False]
    assert attempt.passed is False


def test_katas_are_made_by_name(tmp_path: Path) -> None:
    first, same, other = (find_tasks("katas:all:8", tmp_path, seed=seed) for seed in (3, 3, 4))
    assert len(first) == 8
    assert suite_digest(first) == suite_digest(same) != suite_digest(other)
    assert {kata_family(task.task) for task in first if isinstance(task, LoadedTask)} == set(TEMPLATES_BY_FAMILY)
    (only,) = find_tasks("katas:dicts:20", tmp_path, limit=1)
    assert isinstance(only, LoadedTask)
    assert kata_family(only.task) == "dicts"
    assert len(find_tasks("katas:strings", tmp_path)) == 100


@pytest.mark.parametrize("name", ["katas:", "katas:poems", "katas:lists:0", "katas:lists:many", "katas:lists:-3"])
def test_no_such_katas(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"give katas:FAMILY or FAMILY:COUNT \(arithmetic, "):
        find_tasks(name, tmp_path)
