"""What a hostile policy, a hostile repository or an unlucky operator can do to an attempt, and what becomes of it."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from gametape.agent import text_file
from gametape.agent.agent_state import AgentState
from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.constraints import Constraints
from gametape.agent.recorder import MemoryRecorder, message_step
from gametape.agent.replay import active_steps, last_checkpoint
from gametape.agent.rollout import Rollout
from gametape.agent.shell_commands import split_commands
from gametape.agent.solve import SolveRequest, solve
from gametape.agent.tools.jump import JumpTool
from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.engines.scripted import ScriptedTurn, scripted_model
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.tasks.loader import load_task
from tests.agent.bench import DONE, bench, runs
from tests.patience import effort

TASK = Path(__file__).parents[2] / "examples/tasks/slugs"
pytestmark = pytest.mark.usefixtures("tasks_prepared_once")
DEEP = "import os\nfor _ in range(1200):\n    os.mkdir('dddddd'); os.chdir('dddddd')\n"


def order(tmp_path: Path, turns: list[ScriptedTurn]) -> SolveRequest:
    subject = load_task(TASK, tmp_path / "home")
    return SolveRequest(
        subject, scripted_model("scripted", turns), AttemptDirectory(tmp_path / "out"), tmp_path / "home"
    )


def told(step: Step) -> str:
    return "\n".join(str(result.content) for result in step.observation.results) if step.observation else ""


def kinds(step: Step) -> list[str]:
    return [event["kind"] for event in step.gametape_extra.events or []]


def test_names_that_are_not_text_and_endless_depth_do_not_keep_the_verifier_away(tmp_path: Path) -> None:
    odd = r"touch $'\xff\xfe.py' $'a\nb'; echo kept > kept.txt"
    wanted = order(tmp_path, [runs(odd), runs(f'python3 -c "{DEEP}"'), DONE])
    try:
        for resume in (False, True):
            solved = asyncio.run(solve(wanted, resume))
            assert (solved.outcome, solved.verdict is not None) == ("failed", True)
            assert "+kept\n" in solved.patch.read_text()
            assert os.fsencode("a\nb") in os.listdir(os.fsencode(solved.workspace))
    finally:
        remove_tree(wanted.directory.root)  # which is too deep for whoever tidies up after tests


def test_two_processes_never_work_on_one_attempt(tmp_path: Path) -> None:
    harness = AttemptDirectory(tmp_path / "out")
    with harness.lock(resume=False), pytest.raises(BadInput, match="another process"), harness.lock(resume=False):
        pass
    with harness.lock(resume=False):
        pass


@pytest.mark.parametrize("name", ["x" * 300, "file/below"])
def test_a_place_that_cannot_be_is_refused_in_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be made"), AttemptDirectory(tmp_path / name).lock(resume=False):
        pass


def test_what_the_disk_refuses_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = order(tmp_path, [DONE])
    monkeypatch.setattr(AttemptDirectory, "require_empty", lambda self: self.checkpoints.touch())
    with pytest.raises(BadInput, match="checkpoints: cannot be written"):
        asyncio.run(solve(wanted))


def test_whoever_was_killed_after_the_first_step_begins_with_the_second(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, [DONE]) as (harness, start):
            recorder = MemoryRecorder([message_step(1, "system", "You were an agent.")])
            rollout = await harness.begin(start, recorder)
            assert (await rollout.run()).reason == "finished"
            assert [step.source for step in recorder.steps] == ["system", "user", "agent"]

    asyncio.run(main())


@pytest.mark.parametrize("back", [2, 3, 9])
def test_a_record_that_goes_back_to_what_was_not_there_is_refused(back: int) -> None:
    steps = [
        message_step(1, "system", "s"),
        message_step(2, "system", "b", rolled_back_to=back),
        message_step(3, "user", "u"),
    ]
    with pytest.raises(BadInput, match="goes back to"):
        active_steps(steps)


def test_a_resumed_shell_is_where_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, [runs("mkdir -p 'a b'; cd 'a b'"), runs("pwd")]) as (harness, start):
            rollout = await harness.begin(start)
            await rollout.turn()
            steps = rollout.recorder.steps
            workspace = await harness.scheduler.open_snapshot(last_checkpoint(steps), SandboxSpec())
            resumed = await Rollout.resume(harness.config, workspace, MemoryRecorder(steps))
            assert told(await resumed.turn()) == "/workspace/a b"

    asyncio.run(main())


def test_a_turn_that_cannot_be_saved_is_undone_and_on_record(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, [runs("head -c 3000000 /dev/urandom > big"), runs("ls"), DONE]) as (harness, start):
            harness.store.max_bytes = harness.store.used_bytes() + 1_000_000
            rollout = await harness.begin(start)
            full = await rollout.turn()
            assert kinds(full) == ["checkpoint_dropped"]
            assert "Undone" in told(full)
            assert str(tmp_path) not in told(full)
            assert told(await rollout.turn()) == "[no output]"

    asyncio.run(main())


def test_a_commit_that_no_text_shows_is_undone(tmp_path: Path) -> None:
    made = "git init -q -b main . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"

    async def main() -> None:
        turns = [runs(f"echo '{made}' > do.sh && sh do.sh"), runs("ls -A")]
        async with bench(tmp_path, turns) as (harness, start):
            harness.constraints = Constraints(branches=["main"])
            rollout = await harness.begin(start)
            assert "constraint" in kinds(await rollout.turn())
            assert ".git" not in told(await rollout.turn())

    asyncio.run(main())


@pytest.mark.parametrize("text", ["<<a " * 2000, "cat <<a\n" * 2000, "x" * 40_000, "$(" * 10_000])
def test_no_command_takes_long_to_look_into(text: str) -> None:
    assert effort(lambda: split_commands(text)) < 250


def test_no_path_takes_long_to_judge() -> None:
    deep = "/".join(["d" * 8] * 4000)
    found: list[object] = []
    rules = (Constraints(unwritable=["*.lock", "a/**/b"]), Constraints(unwritable=["dddddddd"]))
    assert effort(lambda: found.extend(len(rule.path_breaches([deep])) for rule in rules)) < 100
    assert found == [0, 1]


def test_a_huge_file_is_not_taken_apart_on_the_host() -> None:
    with pytest.raises(BadInput, match="use the shell"):
        text_file.decode_text(b"ab\n" * (text_file.MAX_TEXT_BYTES // 3 + 1))


def test_a_file_with_a_line_break_in_its_name_does_not_hide_others_from_jump(tmp_path: Path) -> None:
    async def main() -> None:
        files = {"a\nb.py": "def found(): ...\n", "c.py": "def found(): ...\n"}
        async with bench(tmp_path, files=files) as (harness, start):
            workspace = await harness.scheduler.open_snapshot(start, SandboxSpec())
            answer = await JumpTool(AgentState(), sys.executable).call({"symbol": "found"}, workspace)
            assert not answer.failed
            assert "c.py:1" in answer.content

    asyncio.run(main())
