from gametape.agent.tools.search import MAX_MATCHES, SearchTool
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import calls, within

FILES = {
    "src/a.py": "def alpha():\n    return beta()\n",
    "src/b.txt": "alpha beta\n",
    ".git/config": "alpha\n",
    ".hidden/c.py": "alpha\n",
    ".ignore": "src\n",
    "bin": b"\0alpha\0",
    "many.py": "match me\n" * 500,
    "wide.py": "wide " + "x" * 5000 + "\n",
}


def test_matches_with_path_and_glob() -> None:
    everywhere, below, only, none, missing, wide = calls(
        FILES,
        SearchTool(),
        {"pattern": r"alpha\b"},
        {"pattern": "alpha", "path": "src"},
        {"pattern": "alpha", "glob": "*.txt"},
        {"pattern": "nowhere", "path": "src"},
        {"pattern": "x", "path": "no/such"},
        {"pattern": "^wide"},
    )
    assert everywhere.content == ".hidden/c.py:1:alpha\nsrc/a.py:1:def alpha():\nsrc/b.txt:1:alpha beta"
    assert below.content == "src/a.py:1:def alpha():\nsrc/b.txt:1:alpha beta"
    assert only.content == "src/b.txt:1:alpha beta"
    assert none.content == "no matches in src"
    assert missing.failed
    assert "No such file" in missing.content
    assert len(wide.content) < 600


def test_results_are_bounded() -> None:
    files = {f"f{number}.py": "hit\n" * 40 for number in range(10)}
    (result,) = calls(files, SearchTool(), {"pattern": "hit"})
    lines = result.content.split("\n")
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == "[100 of 400 matches; narrow it]"


def test_bad_and_hostile_patterns_are_one_line() -> None:
    broken, option, injected, nul, out = calls(
        FILES,
        SearchTool(),
        {"pattern": "(unclosed"},
        {"pattern": "--files"},
        {"pattern": "'; touch /workspace/owned; '"},
        {"pattern": "a\0b"},
        {"pattern": "root", "path": "/etc"},
    )
    assert broken.content.startswith("search: not a regular expression: ")
    assert "\n" not in broken.content
    assert option.content == injected.content == "no matches"
    assert nul.failed
    assert "outside of the workspace" in out.content


def test_the_agents_shell_is_left_as_it_was() -> None:
    async def talk(workspace: RewindableWorkspace) -> str:
        await workspace.shell("cd src; export KEPT=1 RIPGREP_CONFIG_PATH=/workspace/rc; PATH=/nowhere")
        assert (await SearchTool().call({"pattern": "def alpha"}, workspace)).content == "src/a.py:1:def alpha():"
        return (await workspace.shell("echo $PWD $KEPT")).stdout

    assert within({**FILES, "rc": "--invert-match\n"}, talk) == "/workspace/src 1\n"


def test_grep_answers_alike_where_there_is_no_ripgrep() -> None:
    from gametape.agent.tools.search import _grep
    from gametape.agent.tools.tool import run_program

    async def talk(workspace: RewindableWorkspace) -> list[str]:
        result = await run_program(workspace, _grep(r"alpha\b", ".", None), 20)
        return sorted(line.removeprefix("./") for line in result.stdout.splitlines())

    assert within(FILES, talk) == [".hidden/c.py:1:alpha", "src/a.py:1:def alpha():", "src/b.txt:1:alpha beta"]
