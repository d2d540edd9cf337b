"""Where a rollout stands, taken from its record."""

from gametape.agent.compaction import summarize_progress
from gametape.core.step import Step


def ran(number: int, command: str, answer: str, tool: str = "shell") -> Step:
    call = {"tool_call_id": f"call_{number}_0", "function_name": tool, "arguments": {"command": command}}
    result = {"source_call_id": f"call_{number}_0", "content": answer}
    return Step.model_validate(
        {
            "step_id": number,
            "source": "agent",
            "message": f"Step {number}.",
            "tool_calls": [call],
            "observation": {"results": [result]},
        }
    )


def test_what_failed_is_told_from_what_only_speaks_of_failing() -> None:
    frontier = summarize_progress(
        [
            ran(1, "make", "no rule\n[exit code 2]"),
            ran(2, "cat notes", "the exit code is explained here\nexit code 0"),
            ran(3, "sleep 99", "[the command was ended: it ran longer than 60 seconds]\n[now in /workspace/a]"),
            ran(4, "pattern", "[exit code 1]", tool="search"),
            ran(5, "touch a", "[no output]"),
        ]
    )
    assert [line.split(":")[0] for line in frontier.failed] == ["turn 1", "turn 3"]
    assert [line.split(":")[0] for line in frontier.done] == ["turn 2", "turn 5"]
    assert frontier.next == "Step 5."
