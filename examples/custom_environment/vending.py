"""An environment of your own: a machine with four buttons, and a policy that learns which one to press.

python examples/custom_environment/vending.py [OUT]
"""

import sys
from collections.abc import Sequence
from typing import Literal

import gametape

ANSWERS = {"thirsty": "water", "hungry": "bread", "cold": "coat", "tired": "bed"}


@gametape.tool
def press(state: list[str], button: Literal["water", "bread", "coat", "bed"]) -> gametape.ToolResult:
    """Press one of the buttons. The machine gives what is on it, and that ends the episode."""
    state.append(button)
    return gametape.ToolResult(content=f"here is {button}", finished=True)


class Vending(gametape.StateEnvironment[list[str]]):
    """The state is the list of buttons that were pressed."""

    max_turns = 2

    def __init__(self, need: str) -> None:
        self.name, self.user_prompt, self._answer = f"vending-{need}", f"I am {need}", ANSWERS[need]

    def initial_state(self) -> list[str]:
        return []

    def tools(self) -> Sequence[gametape.Tool]:
        return [press]

    def score_state(self, state: list[str]) -> float:
        return float(state == [self._answer])


def make(seed: int) -> Vending:
    """The environment of a seed: any of the four needs."""
    return Vending(sorted(ANSWERS)[seed % len(ANSWERS)])


CONFIG = {
    "arm": "rlvr",
    "episodes": 3072,
    "tiny": {"layers": 2, "width": 64},
    "warm": {"episodes": 256},
    "rl": {"reproducible": True},
    "optim": {"learning_rate": 1e-3},
    "eval": {"every": 1024, "episodes": 64},
}


def main(out: str = "runs/vending") -> None:
    result = gametape.train_policy(CONFIG, out, environments=make)
    print(f"held-out success: {result['success_before']:.0%} before, {result['success_after']:.0%} after")


if __name__ == "__main__":
    main(*sys.argv[1:])
