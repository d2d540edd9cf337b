"""What a terminal is shown of a rollout: plain text, whatever a model or a tool wrote."""

import pytest

from gametape.core.step import Step
from gametape.terminal.rollout_view import LiveView

ATTACK = "\x1b]0;owned\x07[/red]\u202e"


def test_nothing_that_a_model_says_reaches_the_terminal_as_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    call = {"tool_call_id": "call_3_0", "function_name": ATTACK, "arguments": {ATTACK: ATTACK}}
    result = {"source_call_id": "call_3_0", "content": ATTACK}
    document = {"step_id": 3, "source": "agent", "message": ATTACK, "tool_calls": [call]}
    LiveView(5).show(Step.model_validate(document | {"observation": {"results": [result]}}))
    shown = capfd.readouterr().err
    assert "owned" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
