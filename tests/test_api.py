"""The public API: what it lists is there, importing it is cheap, and its page and examples run."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

import gametape
from gametape.agent.state_environment import StateWorkspace
from gametape.core.errors import BadInput
from gametape.train.config_file import read_config
from gametape.train.early_checks import check_resumable_here
from tests.test_house import architecture

_ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there_and_hides_no_room() -> None:
    assert set(gametape.__all__) & set(architecture.rooms()) == set()
    for name in gametape.__all__:
        assert getattr(gametape, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        gametape.no_such_name  # noqa: B018


def test_importing_it_brings_nothing_heavy_along() -> None:
    code = "import sys, gametape; gametape.BadInput; print(sorted({'torch', 'pydantic', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def page() -> list[str]:
    """The Python blocks of docs/api.md."""
    return re.findall(r"^```python\n(.*?)^```$", (_ROOT / "docs" / "api.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("tasks_prepared_once")
def test_the_page_runs_from_top_to_bottom(
    page: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(_ROOT)
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    namespace: dict[str, object] = {"out": tmp_path, "__name__": "api_page"}
    for block in page:
        exec(compile(block, "docs/api.md", "exec"), namespace)
    assert "double" in capsys.readouterr().out
    result = namespace["result"]
    assert isinstance(result, dict)
    assert result["success_after"] > result["success_before"]


@pytest.mark.parametrize("script", ["custom_environment/vending.py", "custom_algorithm/best_of_group.py"])
def test_an_example_learns(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(_ROOT / "examples" / script), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    before, after = (int(share) for share in re.findall(r"(\d+)%", done.stdout))
    assert after > before + 40


@pytest.mark.parametrize("script", ["custom_environment/vending.py", "custom_algorithm/best_of_group.py"])
def test_what_an_example_defines_is_short(script: str) -> None:
    """An environment with its tool, an algorithm and a reward take less than 40 lines each."""
    text = (_ROOT / "examples" / script).read_text()
    for definition in re.split(r"^(?=class |@gametape|def )", text, flags=re.MULTILINE)[1:]:
        assert len(definition.strip().splitlines()) < 40


@gametape.tool
def add(state: list[int], number: int, times: int = 1) -> str:
    """Add a number."""
    if number < 0:
        raise BadInput("only upwards")
    state.append(number * times)
    return f"sum {sum(state)}"


async def _call(**arguments: object) -> tuple[str, bool]:
    result = await add.call(dict(arguments), StateWorkspace[list[int]]([]))
    return result.content, result.failed


async def _answers() -> list[tuple[str, bool]]:
    return [
        await _call(number=2),
        await _call(number="3", times=2),
        await _call(number="three"),
        await _call(),
        await _call(number=1, other=1),
        await _call(number=-1),
    ]


def test_a_tool_checks_its_arguments_by_its_type_hints() -> None:
    import asyncio

    assert add.definition["parameters"]["required"] == ["number"]
    assert set(add.definition["parameters"]["properties"]) == {"number", "times"}
    good, coerced, *bad = asyncio.run(_answers())
    assert good == ("sum 2", False)
    assert coerced == ("sum 6", False)
    assert all(failed for _, failed in bad)
    assert "number" in bad[0][0]
    assert "only upwards" in bad[3][0]


def test_a_tool_without_type_hints_is_refused() -> None:
    with pytest.raises(BadInput, match="'number' has no type hint"):
        gametape.tool(lambda state, number: "")


def test_a_state_workspace_goes_back_and_forks() -> None:
    import asyncio

    async def story() -> tuple[list[int], list[int]]:
        workspace = StateWorkspace([1])
        saved = await workspace.snapshot()
        workspace.state.append(2)
        fork = await workspace.fork(saved)
        fork.state.append(3)
        await workspace.restore(saved)
        with pytest.raises(BadInput, match="no snapshot"):
            await workspace.restore("7")
        with pytest.raises(BadInput, match="no shell"):
            await workspace.shell("ls")
        return workspace.state, fork.state

    assert asyncio.run(story()) == ([1], [1, 3])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"environments": []}, "the list is empty"),
        ({"environments": [1]}, "is no environment"),
        ({"environments": 7}, "give a list of environments"),
        ({"environments": "worlds"}, "is no environment"),
        ({"algorithm": dict}, "does not inherit from gametape.Algorithm"),
        ({"reward": 1.0}, "give a function"),
        ({"config": {"arm": "rlvr", "tasks": "worlds:easy", "episodes": 8, "no_such": 1}}, "no_such"),
        ({"config": {"arm": "rlvr", "tasks": "worlds:easy", "episodes": 8, "algorithm": {"odd": 1}}}, "odd"),
    ],
)
def test_what_cannot_be_trained_on_is_one_line(wrong: dict[str, object], says: str, tmp_path: Path) -> None:
    given: dict[str, object] = {"config": {"arm": "rlvr", "episodes": 8, "tasks": "worlds:easy"}} | wrong
    with pytest.raises(BadInput, match=says) as caught:
        gametape.train_policy(out=tmp_path / "run", **given)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_tool_that_cannot_be_described_is_refused() -> None:
    class Odd: ...

    def starred(*numbers: int) -> str: ...

    def odd(value: Odd) -> str: ...

    for function, says in ((3, "no function"), (starred, "any number"), (odd, "no JSON schema")):
        with pytest.raises(BadInput, match=says):
            gametape.tool(function)  # type: ignore[arg-type]


@gametape.tool
def pick(state: list[str], colour: Literal["red", "blue"]) -> str:
    """Pick a colour."""
    if colour == "red":
        raise ZeroDivisionError("no red today")
    state.append(colour)
    return "done"


class _Picking(gametape.StateEnvironment[list[str]]):
    name = "picking"
    user_prompt = "pick one"
    max_turns = 2

    def initial_state(self) -> list[str]:
        return []

    def tools(self) -> list[Any]:
        return [pick]

    def score_state(self, state: list[str]) -> float:
        return float("blue" in state)


_PICKING: dict[str, Any] = {
    "arm": "rlvr",
    "episodes": 8,
    "tiny": {"layers": 1, "width": 16, "heads": 2, "window": 128},
    "warm": {"episodes": 4, "batch": 2},
    "rl": {"groups": 2, "group_size": 2, "turn_tokens": 4},
    "eval": {"every": 0, "episodes": 2},
}


def test_a_tool_that_breaks_is_an_answer_and_a_run_goes_on_longer(tmp_path: Path) -> None:
    """Neither the words of the policy nor its warm start nor its rollouts end with the tool's error."""
    first = gametape.train_policy(_PICKING, tmp_path / "run", environments=[_Picking()])
    with pytest.raises(BadInput, match=r"begun by gametape\.train_policy with environments from Python; go on with it"):
        check_resumable_here(tmp_path / "run", read_config(tmp_path / "run/config.toml"))
    longer = gametape.train_policy(_PICKING | {"episodes": 16}, tmp_path / "run", environments=[_Picking()])
    assert (first["episodes"] >= 8, longer["episodes"] >= 16) == (True, True)
    (line,) = (tmp_path / "run" / "config-history.jsonl").read_text().splitlines()
    assert json.loads(line)["changes"] == {"episodes": {"before": 8, "after": 16}}
    with pytest.raises(BadInput, match=r"seed is not what the run was begun with.*may change: episodes"):
        gametape.train_policy(_PICKING | {"seed": 1}, tmp_path / "run", environments=[_Picking()])
    words = json.loads((tmp_path / "run" / "start" / "tokenizer.json").read_text())["model"]["vocab"]
    assert {"ZeroDivisionError:", "inside:"} <= set(words)


def test_a_directory_in_use_is_refused_in_the_words_of_the_api(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty; a run needs a new directory") as caught:
        gametape.train_policy(_PICKING, tmp_path, environments=[_Picking()])
    assert "--" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
