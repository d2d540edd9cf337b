"""How much a verdict can be relied on, as a word, and in words what was excluded and what was not."""

from gametape.core.plural import count_of
from gametape.core.task import TaskTests
from gametape.core.verdict import AssuranceLevel, FreshCalls, VerificationMode
from gametape.verify.progress import fresh_share
from gametape.verify.result_counts import feature_tests
from gametape.verify.test_ways import TestWays

_WAY_WORDS: dict[VerificationMode, str] = {
    "replay": "by replay",
    "split": "live and apart from the code",
    "shared": "in one process with the code",
}


def assurance_level(mode: VerificationMode, tests: TaskTests, twins: int, fresh: FreshCalls | None) -> AssuranceLevel:
    """`high` needs tests apart from the code and fresh calls, whose answers nobody could know; in one process with the
    code there is `medium` where twins and held-out tests would show what is forged or copied, else `low`."""
    if mode == "shared":
        return "medium" if twins and tests.held_out else "low"
    return "medium" if fresh_share(fresh) is None else "high"


def describe_assurance(
    ways: TestWays, tests: TaskTests, twins: int, fresh: FreshCalls | None, self_compared: int = 0
) -> str:
    """What the verdict rests on, and what it does not exclude."""
    feature = feature_tests(tests) or tests.every
    counts = ways.count(feature)
    parts = [f"{counts[way]} {_WAY_WORDS[way]}" for way in _WAY_WORDS if counts[way]]
    mode = ways.mode(tests)
    sentences = [f"of {count_of(len(feature), 'test')} of the feature: {', '.join(parts)}"]
    if mode == "shared":
        sentences.append("expected values were in the process of the code: reading them there is not excluded")
        sentences.append(
            f"{count_of(twins, 'contradicting copy', 'contradicting copies')} of tests would show forged results"
            if twins
            else "no contradicting copy of a test could be made, so forged results are not excluded"
        )
    else:
        sentences.append("the code that was judged had no expected value of the tests that decide")
        if counts["shared"]:
            sentences.append("those in one process with it can lower the reward and cannot raise it")
    if self_compared and fresh_share(fresh) is None:
        of_all = f"{self_compared} of {count_of(len(feature), 'test')}"
        sentences.append(f"the answers of {of_all} are comparisons made by the code itself")
    sentences.append(_unseen_inputs(tests, fresh))
    return "; ".join(sentences)


def _unseen_inputs(tests: TaskTests, fresh: FreshCalls | None) -> str:
    held_out = count_of(len(tests.held_out), "held-out test") if tests.held_out else "no held-out test"
    if fresh is None:
        rest = "no fresh calls could be made"
    elif fresh_share(fresh) is None:
        rest = f"{count_of(fresh.calls, 'fresh call')}, too few to count"
    else:
        rest = count_of(fresh.calls, "fresh call")
    text = f"{held_out}, {rest}"
    if fresh_share(fresh) is not None:
        return text
    if not tests.held_out:
        return f"{text}: a table of the visible answers is not excluded"
    return f"{text}: tests alone decide, and what satisfies them without the work is not excluded"
