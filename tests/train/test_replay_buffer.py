"""Targets of earlier updates come back, cut to what they need, and survive being written down."""

import json
from dataclasses import replace

import torch

from gametape.core.config import TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.replay_buffer import ReplayBuffer
from gametape.train.rollouts import DistillTarget


def segment(seed: int) -> TokenSegment:
    ids = torch.randint(0, 99, (20,), generator=torch.Generator().manual_seed(seed)).tolist()
    mask = [0] * 8 + [1] * 4 + [0] * 4 + [1] * 4
    return TokenSegment(ids, mask, [-0.5 * bit for bit in mask], [3 * bit for bit in mask], [1] * 20)


AIM = DistillTarget(start=8, length=4, shared_prefix=7, hint_ids=(5, 6), kind="k", text="t", trajectory_id="r", step=1)


def batch(*seeds: int) -> TrainBatch:
    return TrainBatch(tuple(TrainSample(segment(seed), seed, 0.25, targets=(AIM,)) for seed in seeds), rollouts=8)


def test_a_target_comes_back_without_its_reward_and_without_what_follows_it() -> None:
    shelf = ReplayBuffer(TTFConfig(replay=2.0, replay_capacity=3), seed=1)
    first = batch(0, 1)
    assert shelf.with_replayed(first, 0) == first
    second = shelf.with_replayed(batch(2), 1)
    new, *again = second.samples
    assert (new, second.rollouts) == (batch(2).samples[0], 8)
    assert [line.prompt_number for line in again] == [0, 1]
    for line in again:
        assert (line.advantage, line.targets) == (0.0, (AIM,))
        assert line.segment.ids == segment(line.prompt_number).ids[:12]
        assert sum(line.segment.mask) == 4


def test_only_the_latest_are_kept_and_the_draw_depends_on_the_step_alone() -> None:
    shelf = ReplayBuffer(TTFConfig(replay=2, replay_capacity=3), seed=1)
    for step in range(4):
        shelf.with_replayed(batch(step), step)
    other = ReplayBuffer(TTFConfig(replay=2, replay_capacity=3), seed=1)
    other.restore(json.loads(json.dumps(shelf.state())))
    mine, theirs = shelf.with_replayed(batch(9), 7), other.with_replayed(batch(9), 7)
    assert mine == theirs
    assert {line.prompt_number for line in mine.samples[1:]} < {1, 2, 3}


def test_turns_to_imitate_come_back_too_and_rewards_do_not() -> None:
    shelf = ReplayBuffer(TTFConfig(replay=9), seed=1)
    resampled = replace(AIM, learn="resample", resampled=(1, 2))
    line = TrainSample(resampled.replacement_segment(segment(1)), 1, sft_weight=0.5)
    shelf.with_replayed(TrainBatch((line, TrainSample(segment(2), 2, advantage=1.0)), rollouts=8), 0)
    again = TrainBatch((TrainSample(segment(2), 2, advantage=1.0), line), rollouts=8)
    assert shelf.with_replayed(again, 1).samples == (*again.samples, line)


def test_without_new_targets_there_are_no_old_ones() -> None:
    shelf = ReplayBuffer(TTFConfig(replay=9), seed=1)
    shelf.with_replayed(batch(0, 1), 0)
    assert shelf.with_replayed(TrainBatch((), rollouts=8), 1).samples == ()


def test_without_replay_nothing_is_kept() -> None:
    shelf = ReplayBuffer(TTFConfig(replay=0), seed=1)
    shelf.with_replayed(batch(1), 0)
    assert shelf.state() == []
