from gametape.agent.tools.history import HistoryTool, commit_conventions, current_branch, has_history
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import calls, within

COMMIT = "git -c user.name=A -c user.email=a@b commit -q -m"
REPOSITORY = (
    f"git init -q -b main . && git add -A && {COMMIT} 'feat(core): Add the start' && echo two >> a.py && git add -A && "
    f"{COMMIT} 'fix: Repair it' && echo three >> a.py"
)


def test_log_blame_and_diff() -> None:
    log, one, blame, diff, none, needs = calls(
        {"a.py": "one\n", "b.py": "b\n"},
        HistoryTool(),
        {"what": "log"},
        {"what": "log", "path": "b.py"},
        {"what": "blame", "path": "a.py", "line": 2, "count": 1},
        {"what": "diff"},
        {"what": "diff", "path": "b.py"},
        {"what": "blame"},
        before=REPOSITORY,
    )
    assert [line.split(": ", 1)[1] for line in log.content.split("\n")] == [
        "fix: Repair it",
        "feat(core): Add the start",
    ]
    assert one.content.endswith("feat(core): Add the start")
    assert "two" in blame.content
    assert "\n+three" in diff.content
    assert none.content == "no uncommitted changes"
    assert needs.content == "history: blame needs a path"


def test_a_hostile_configuration_runs_nothing() -> None:
    hostile = (
        "printf '#!/bin/sh\\ntouch /workspace/owned\\n' > evil; chmod +x evil; "
        "for name in core.fsmonitor core.pager diff.external core.editor log.showSignature gpg.program pager.log "
        "diff.x.textconv alias.log core.hooksPath; do git config $name /workspace/evil; done; "
        "git config log.showSignature true; echo '*.py diff=x' > .gitattributes; printf '\\0' >> a.py"
    )

    async def talk(workspace: RewindableWorkspace) -> str:
        await workspace.shell(REPOSITORY)
        await workspace.shell(hostile)
        for question in ({"what": "log"}, {"what": "diff"}, {"what": "blame", "path": "a.py"}, {"what": "conventions"}):
            assert not (await HistoryTool().call(question, workspace)).failed, question
        return (await workspace.shell("ls owned")).stdout

    assert within({"a.py": "one\n"}, talk) == ""


def test_where_there_is_no_repository_it_says_so() -> None:
    async def talk(workspace: RewindableWorkspace) -> tuple[bool, str, bool]:
        before = await has_history(workspace)
        assert await current_branch(workspace) is None
        answer = (await HistoryTool().call({"what": "log"}, workspace)).content
        await workspace.shell(REPOSITORY)
        assert await current_branch(workspace) == "main"
        await workspace.shell("git stash -q; git checkout -q --detach")
        assert await current_branch(workspace) == ""
        return before, answer, await has_history(workspace)

    before, answer, after = within({"a.py": "one\n"}, talk)
    assert (before, after) == (False, True)
    assert answer.startswith("history: git: fatal: not a git repository")


def test_conventions_are_a_short_summary() -> None:
    subjects = [
        "fix: Repair the parser",
        "feat(core): Add a lexer",
        "fix: Remove dead code",
        "Updated readme.",
        "[ci] Bump",
    ]
    told = commit_conventions(subjects).split("\n")
    assert told[0] == "5 commit subjects"
    assert told[1] == "prefixes: fix (2), feat(core) (1), [ci] (1); on 80% of them"
    assert told[2] == "imperative: 80%; capital first letter: 100%; final full stop: 20%"
    assert told[5] == "  fix: Repair the parser"
    assert commit_conventions([]) == "no commits"
