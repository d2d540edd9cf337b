"""The state of a run in a checkpoint: it comes back, also from before its keys were renamed."""

import json

from gametape.core.config import TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.progress import TokenCounts, TrainingProgress
from gametape.train.replay_buffer import ReplayBuffer
from gametape.train.rollouts import DistillTarget, PromptRequest, RolloutGroup, RolloutResult, RolloutSample

COLUMNS = {"ids": [1, 2], "mask": [0, 1], "logprobs": [0.0, -0.5], "policy_versions": [-1, 3], "steps": [0, 2]}
OLD_AIM = {
    "start": 1,
    "length": 1,
    "cut": 1,
    "inserted": [7, 8],
    "weight": 1.0,
    "kind": "k",
    "text": "t",
    "rollout": "d00000004.000",
    "step": 2,
    "learn": "kl",
    "resampled": [],
}
OLD_GROUP = {
    "draw": {"number": 4, "cell": 0, "seed": 9},
    "rollouts": [
        {
            "segments": [COLUMNS],
            "result": {"reward": 0.0, "passed": False, "overlong": False, "lost": True},
            "turns": 1,
            "read": 5,
            "generated": 1,
            "reason": "",
            "hacked": False,
            "marks": [{"turn": 1, "right": False, "load_bearing": True, "key": ""}],
            "said": [{"text": "", "tool_calls": [], "result": "ok"}],
        }
    ],
    "aims": [{"rollout": 0, "segment": 0, "aim": OLD_AIM}],
    "coach_tokens": 3,
}
TARGET = DistillTarget(1, 1, 1, (7, 8), kind="k", text="t", trajectory_id="d00000004.000", step=2)


def test_progress_from_before_the_renaming_comes_back() -> None:
    old = {
        "step": 2,
        "version": 1,
        "draws": 5,
        "episodes": 8,
        "dropped": 0,
        "staleness": [[0, 8]],
        "tokens": {"generated": 1, "forwarded": 2, "backpropagated": 3, "coach": 4},
        "seconds": 1.5,
        "scores": [{"episodes_so_far": 0, "success": 0.0, "lost": 0, "read": 4, "generated": 2}],
        "ordered": [{"number": 5, "cell": 0, "seed": 3}],
        "waiting": [OLD_GROUP],
    }
    progress = TrainingProgress.from_dict(json.loads(json.dumps(old)))
    assert (progress.requests, progress.staleness, progress.tokens) == (5, {0: 8}, TokenCounts(1, 2, 3, 4))
    assert progress.scores == old["scores"]
    assert progress.ordered == [PromptRequest(5, 0, 3)]
    (group,) = progress.waiting
    assert group.request == PromptRequest(4, 0, 9)
    assert group.targets[0].trajectory_id == TARGET.trajectory_id
    assert (group.targets[0].rollout_index, group.targets[0].segment_index, group.targets[0].hint_ids) == (0, 0, (7, 8))
    (rollout,) = group.rollouts
    assert rollout.result == RolloutResult(0.0, False, infra_error=True)
    assert (rollout.tokens_read, rollout.tokens_generated, rollout.turn_texts[0]["result"]) == (5, 1, "ok")
    assert rollout.segments == (TokenSegment(**COLUMNS),)
    assert TrainingProgress.from_dict(json.loads(json.dumps(progress.to_dict()))) == progress


def test_a_replay_buffer_from_before_the_renaming_comes_back() -> None:
    buffer = ReplayBuffer(TTFConfig(), seed=0)
    buffer.restore([{"segment": COLUMNS, "family": 4, "advantage": 0.0, "imitated": 0.5, "aims": [OLD_AIM]}])
    (state,) = buffer.state()
    assert (state["prompt_number"], state["sft_weight"]) == (4, 0.5)
    other = ReplayBuffer(TTFConfig(), seed=0)
    other.restore(json.loads(json.dumps([state])))
    assert other.state() == [state]
    assert state["targets"][0]["hint_ids"] == (7, 8)


def test_a_group_comes_back_through_json() -> None:
    sample = RolloutSample((TokenSegment(**COLUMNS),), RolloutResult(1.0, True), 1, 2, 3)
    group = RolloutGroup(PromptRequest(1, 0, 2), (sample,), (TARGET,), 7)
    assert RolloutGroup.from_dict(json.loads(json.dumps(group.to_dict()))) == group
