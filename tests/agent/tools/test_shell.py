from gametape.agent.agent_state import AgentState
from gametape.agent.tools.shell import ShellTool
from tests.agent.tools.workspace import call, calls


def test_output_exit_code_and_directory() -> None:
    state = AgentState()
    first, second, third, fourth = calls(
        {},
        ShellTool(state),
        {"command": "echo out; echo err >&2; mkdir d; cd d; (exit 3)"},
        {"command": "pwd; export A=1"},
        {"command": "test $A = 1"},
        {"command": "cd /nowhere"},
    )
    assert first.content == "out\nerr\n[exit code 3]\n[now in /workspace/d]"
    assert second.content == "/workspace/d"
    assert third.content == "[no output]"
    assert "No such file" in fourth.content
    assert state.directory == "/workspace/d"
    assert not any(result.failed for result in (first, second, third, fourth))
    assert first.cpu_seconds >= 0


def test_what_ended_a_command_is_told() -> None:
    slow, loud, gone = calls(
        {},
        ShellTool(AgentState()),
        {"command": "echo begun; sleep 100", "timeout": 0.3},
        {"command": "yes"},
        {"command": "exit 4"},
    )
    assert slow.content.startswith("begun\n")
    assert slow.content.endswith("[the command was ended: it ran longer than 0.3 seconds]")
    assert loud.content.endswith("[the command was ended: it printed too much]")
    assert gone.content.startswith("[exit code 4]\n[the shell ended with the command and was started anew")


def test_terminal_control_is_not_passed_on() -> None:
    assert call({}, ShellTool(AgentState()), command=r"printf '\e[31mred\e[0m\a\0'").content == "red"


def test_hostile_arguments_are_answered_and_the_shell_lives() -> None:
    nul, half, long, fine = calls(
        {},
        ShellTool(AgentState(), max_seconds=5),
        {"command": "echo \0"},
        {"command": "echo \ud800"},
        {"command": "echo", "timeout": 6},
        {"command": "echo fine"},
    )
    assert nul.failed
    assert half.refused
    assert "half a character" in half.content
    assert long.content.startswith("shell: argument 'timeout' must be at most 5; expected: command (string)")
    assert fine.content == "fine"
