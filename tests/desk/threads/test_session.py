"""Conversations: said once, answered, killed anywhere, forked, bounded and closed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gametape.agent.constraints import Constraints
from gametape.agent.recorded_steps import step_text
from gametape.agent.recorder import JournalRecorder
from gametape.core.errors import BadInput
from gametape.desk.threads import session
from gametape.desk.threads.journal_follower import JournalFollower
from gametape.desk.threads.lifecycle import fork_thread, record_outcome
from gametape.desk.threads.overview import archive_thread, list_threads, thread_patch
from gametape.desk.threads.session import ThreadReplyCache
from gametape.desk.threads.thread import ThreadRefused, thread_directory
from gametape.desk.vault.repository import VaultRepository
from gametape.desk.vault.vault import Vault
from gametape.record.trajectory_file import load_trajectory
from tests.engines.openai.server import FaultServer
from tests.engines.openai.server import Said as Reply

from ..steps import Killed
from .bench import Bench, runs, says

LOOK = [
    runs("echo 2 >> a.txt; cd sub 2>/dev/null || mkdir sub", "I look."),
    says("I note it.", ("remember", {"name": "projects/a", "text": "it counts"})),
    says("I write.", ("draft", {"to": "ada", "subject": "a", "text": "it counts"})),
    says("It counts."),
    runs("cat a.txt", "Again."),
    says("Still."),
]


def test_a_thread_answers_remembers_and_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LOOK)
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("1\n")
    (work / "AGENTS.md").write_text("Count aloud.")
    directory = bench.begin("Be brief.", workspace=str(work), title="counting")
    seen: list[int] = []
    follower = JournalFollower(directory.journal, lambda step: seen.append(step.step_id))
    first = bench.say(directory, "What is it?")
    follower.poll()
    assert (first.ended, first.answer, first.turns) == ("answered", "It counts.", 4)
    assert seen == [2, 3, 4, 5, 6]
    second = bench.say(directory, "And now?")
    assert (second.ended, second.answer) == ("answered", "Still.")
    steps = directory.load_trajectory().steps
    assert [step.source for step in steps] == ["system", "user", *["agent"] * 4, "user", "agent", "agent"]
    assert steps[7].observation.results[0].content == "1\n2"
    assert {"Count aloud.", "Be brief."} <= set(step_text(steps[0]).splitlines())
    assert directory.load_trajectory().tokens_exact() is True
    assert (work / "a.txt").read_text() == "1\n"
    assert thread_patch(directory).splitlines()[-3:] == ["@@ -1 +1,2 @@", " 1", "+2"]
    [one] = list_threads(bench.home)
    assert (one.said, one.answered, one.turns, one.thread.title) == (2, 2, 6, "counting")
    vault = Vault.open(bench.home / "vault")
    assert vault.read("projects/a") == "it counts\n"
    vault.read_by("projects/a", directory.root.name, 9)
    record_outcome(directory.trajectory, succeeded=True)
    assert vault.reads.usage() == [("projects/a", 1, 0, 0)]


def test_said_twice_under_one_key_is_said_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [says("One."), says("Two.")])
    directory = bench.begin()
    assert bench.say(directory, "Hello", "k") == bench.say(directory, "Hello", "k")
    assert bench.say(directory, "Hello", "other").answer == "Two."
    assert bench.say(directory, "Hello", "k").answer == "One."
    assert directory.load_trajectory().turns == 2


def _before(real: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Dies instead of the n-th call."""
    calls = iter(range(number))

    def dies(*words: Any, **named: Any) -> Any:
        if next(calls, None) is None:
            raise Killed
        return real(*words, **named)

    return dies


def _after(real: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Dies when the n-th call is done."""
    calls = iter(range(number))

    def dies(*words: Any, **named: Any) -> Any:
        done = real(*words, **named)
        if next(calls, None) is None:
            raise Killed
        return done

    return dies


KILLS = [
    (JournalRecorder, "append", _before, 2),
    (ThreadReplyCache, "write", _after, 2),
    (VaultRepository, "commit", _after, 0),
    (Vault, "write", _after, 0),
    (Bench, "draft", _after, 0),
]


@pytest.mark.parametrize(("owner", "name", "way", "number"), KILLS)
def test_killed_anywhere_it_goes_on_and_effects_appear_once(
    tmp_path: Path, owner: type, name: str, way: Callable[..., Any], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, LOOK)
    directory = bench.begin()
    target: Any = bench.outbox if owner is Bench else owner
    with monkeypatch.context() as patched:
        patched.setattr(target, name, way(getattr(target, name), number))
        with pytest.raises(Killed):
            bench.say(directory, "What is it?", "k")
    assert bench.say(directory, "What is it?", "k").answer == "It counts."
    steps = directory.load_trajectory().steps
    assert [step.source for step in steps] == ["system", "user", *["agent"] * 4]
    subjects = Vault.open(bench.home / "vault").repository.git("log", "--format=%s").decode().splitlines()
    assert subjects.count("projects/a: remembered") == 1
    assert len(subjects) == 2
    assert len(bench.outbox.list()) == 1
    assert "+2\n" in thread_patch(directory)
    assert "+2\n+2" not in thread_patch(directory)


def test_a_reply_that_was_paid_for_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, [says("unused")])
    replies = [Reply("I note.", (("remember", '{"name": "a", "text": "one"}'),)), Reply("Done.")]
    with FaultServer(replies, window=32_000) as server:
        directory = bench.begin(model=f"openai:tiny@{server.url}/v1")
        with monkeypatch.context() as patched:
            patched.setattr(ThreadReplyCache, "write", _after(ThreadReplyCache.write, 0))
            with pytest.raises(Killed):
                bench.say(directory, "Go", "k")
        assert bench.say(directory, "Go", "k").answer == "Done."
        assert len(server.requests) == 2
    assert Vault.open(bench.home / "vault").read("a") == "one\n"


def test_a_fork_has_the_past_and_the_files_and_goes_its_own_way(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [runs("echo one >> f"), says("One."), runs("echo two >> f; cat f"), says("Two.")])
    directory = bench.begin(budget_tokens=10**9)
    bench.say(directory, "first")
    bench.say(directory, "second")
    forked = fork_thread(bench.home, directory.root.name, at=4, title="another way")
    assert forked.read().forked_from == f"{directory.root.name}, step 4"
    assert bench.say(forked, "third").answer == "Two."
    assert forked.load_trajectory().steps[5].observation.results[0].content == "one\ntwo"
    assert list_threads(bench.home)[0].thread.title == "another way"
    assert spent(bench, forked.root.name) < spent(bench, directory.root.name)
    assert not (forked.root / "checkpoints").exists()
    with pytest.raises(BadInput, match="step 99"):
        fork_thread(bench.home, directory.root.name, at=99)


def spent(bench: Bench, name: str) -> int:
    return next(one.tokens for one in list_threads(bench.home) if one.thread.thread_id == name)


def test_an_archived_thread_is_a_trajectory_and_says_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [says("One."), says("Two.")])
    directory = bench.begin()
    bench.say(directory, "first", "k")
    file = archive_thread(directory)
    assert archive_thread(directory) == file
    assert load_trajectory(file).final_metrics is not None
    assert list_threads(bench.home)[0].thread.state == "archived"
    assert bench.say(directory, "first", "k").answer == "One."
    with pytest.raises(ThreadRefused, match="archived"):
        bench.say(directory, "second")
    assert bench.say(fork_thread(bench.home, directory.root.name), "second").answer == "Two."


def test_a_spent_budget_holds_for_life_and_one_answer_may_have_less(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [runs("true"), runs("true"), says("Done.")])
    directory = bench.begin(budget_tokens=100_000)
    small = bench.say(directory, "first", budget_tokens=1)
    assert (small.ended, small.turns) == ("limit", 1)
    directory.update(budget_tokens=small.tokens)
    with pytest.raises(ThreadRefused, match="spent its budget"):
        bench.say(directory, "second")
    assert len(directory.load_trajectory().steps) == 3
    directory.update(budget_tokens=100_000)
    assert bench.say(directory, "second").answer == "Done."


class _Pause:
    """A breaker that goes off after the first step, as the watch's own does after many."""

    rung, reason, nudge = "pause", "it repeats itself", ""

    def __init__(self) -> None:
        self._seen = False

    def __call__(self, _step: object, /) -> None:
        self._seen = True

    def replay(self, _steps: object, /) -> None:
        return None

    def take_trip(self) -> "_Pause | None":
        return self if self._seen else None

    def to_dict(self) -> dict[str, str]:
        return {"kind": "breaker", "rung": self.rung, "detail": self.reason}


def test_the_watch_pauses_a_thread_until_a_person_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, [runs("echo same"), runs("echo same"), says("Done.")])
    directory = bench.begin()
    with monkeypatch.context() as patched:
        patched.setattr(session, "BehaviourBreaker", lambda _watch: _Pause())
        end = bench.say(directory, "go", "k")
    assert (end.ended, end.turns) == ("paused", 1)
    assert "it repeats itself" in str(directory.read().paused)
    assert bench.say(directory, "go", "k") == end
    with pytest.raises(ThreadRefused, match="--anyway"):
        bench.say(directory, "go on")
    assert bench.say(directory, "go on", anyway=True).answer == "Done."
    assert directory.read().state == "open"


def test_what_is_forbidden_is_refused_at_the_call_and_on_record(tmp_path: Path) -> None:
    turns = [says("I note.", ("remember", {"name": "a", "text": "key sk-12345"})), runs("git push"), says("No.")]
    bench = Bench(tmp_path, turns)
    directory = bench.begin(constraints=Constraints(output=["sk-[0-9]+"], commands=["^git push"]))
    assert bench.say(directory, "go").answer == "No."
    kinds = [event["kind"] for step in directory.load_trajectory().steps for event in step.gametape_extra.events or []]
    assert kinds == ["constraint", "constraint"]
    assert Vault.open(bench.home / "vault").names() == []


def test_compaction_keeps_what_was_asked_last(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    replies = [Reply(f"{'x' * 9000} {number}") for number in range(5)]
    with FaultServer(replies, window=16_000) as server:
        directory = bench.begin(model=f"openai:tiny@{server.url}/v1")
        for number in range(5):
            assert bench.say(directory, f"question {number} {'y' * 500}").ended == "answered"
    steps = directory.load_trajectory().steps
    compacted = [step for step in steps if step.gametape_extra.compacted]
    assert compacted
    asked = next(number for number, step in enumerate(steps) if step is compacted[-1])
    assert step_text(steps[asked - 1])[:12] in step_text(compacted[-1])


def test_several_threads_work_at_once(tmp_path: Path) -> None:
    from gametape.desk.threads.session import ThreadMessage, ThreadSession

    from .bench import never

    bench = Bench(tmp_path, LOOK)
    directories = [bench.begin() for _ in range(3)]

    async def main() -> list[str]:
        talks = (
            ThreadSession(bench.home, directory, bench.outbox).send(ThreadMessage("go", "k"), never)
            for directory in directories
        )
        return [end.answer for end in await asyncio.gather(*talks)]

    assert asyncio.run(main()) == ["It counts."] * 3
    names = Vault.open(bench.home / "vault").names()
    assert names == ["projects/a"]
    assert len(bench.outbox.list()) == 3


def test_a_beginning_of_a_name_is_enough_if_it_is_one_threads(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [says("x")])
    directory = bench.begin()
    assert thread_directory(bench.home, directory.root.name[:-2]) == directory
    bench.begin()
    with pytest.raises(BadInput, match="2 threads"):
        thread_directory(bench.home, "thread-2")
    for name in ("thread", "../x", "thread-20200101-000000"):
        with pytest.raises(BadInput, match="no such thread"):
            thread_directory(bench.home, name)
