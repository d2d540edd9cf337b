import pytest

from gametape.agent.tools.finish import FinishTool
from tests.agent.tools.workspace import call


def test_it_ends_the_rollout() -> None:
    result = call({}, FinishTool(), summary="done", confidence=0.75)
    assert result.finished
    assert result.content == "finished (confidence 0.75)"


@pytest.mark.parametrize("confidence", [-0.1, 1.1, "high", True, float("nan")])
def test_a_confidence_is_a_probability(confidence: object) -> None:
    result = call({}, FinishTool(), summary="done", confidence=confidence)
    assert result.refused
    assert not result.finished
