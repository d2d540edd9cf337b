"""Targets of earlier updates come back, cut to what they need, and survive being written down."""

import json
from dataclasses import replace

import torch

from gametape.core.config import TTFConfig
from gametape.core.segments import Segment
from gametape.train.aims import Aim
from gametape.train.batch import Batch, Line
from gametape.train.shelf import Shelf


def segment(seed: int) -> Segment:
    ids = torch.randint(0, 99, (20,), generator=torch.Generator().manual_seed(seed)).tolist()
    mask = [0] * 8 + [1] * 4 + [0] * 4 + [1] * 4
    return Segment(ids, mask, [-0.5 * bit for bit in mask], [3 * bit for bit in mask], [1] * 20)


AIM = Aim(start=8, length=4, cut=7, inserted=(5, 6), kind="k", text="t", rollout="r", step=1)


def batch(*seeds: int) -> Batch:
    return Batch(tuple(Line(segment(seed), seed, 0.25, aims=(AIM,)) for seed in seeds), rollouts=8)


def test_a_target_comes_back_without_its_reward_and_without_what_follows_it() -> None:
    shelf = Shelf(TTFConfig(replay=2.0, stored=3), seed=1)
    first = batch(0, 1)
    assert shelf.filled(first, 0) == first
    second = shelf.filled(batch(2), 1)
    new, *again = second.lines
    assert (new, second.rollouts) == (batch(2).lines[0], 8)
    assert [line.family for line in again] == [0, 1]
    for line in again:
        assert (line.advantage, line.aims) == (0.0, (AIM,))
        assert line.segment.ids == segment(line.family).ids[:12]
        assert sum(line.segment.mask) == 4


def test_only_the_latest_are_kept_and_the_draw_depends_on_the_step_alone() -> None:
    shelf = Shelf(TTFConfig(replay=2, stored=3), seed=1)
    for step in range(4):
        shelf.filled(batch(step), step)
    other = Shelf(TTFConfig(replay=2, stored=3), seed=1)
    other.restore(json.loads(json.dumps(shelf.state())))
    mine, theirs = shelf.filled(batch(9), 7), other.filled(batch(9), 7)
    assert mine == theirs
    assert {line.family for line in mine.lines[1:]} < {1, 2, 3}


def test_turns_to_imitate_come_back_too_and_rewards_do_not() -> None:
    shelf = Shelf(TTFConfig(replay=9), seed=1)
    resampled = replace(AIM, learn="resample", resampled=(1, 2))
    line = Line(resampled.instead(segment(1)), 1, imitated=0.5)
    shelf.filled(Batch((line, Line(segment(2), 2, advantage=1.0)), rollouts=8), 0)
    again = Batch((Line(segment(2), 2, advantage=1.0), line), rollouts=8)
    assert shelf.filled(again, 1).lines == (*again.lines, line)


def test_without_new_targets_there_are_no_old_ones() -> None:
    shelf = Shelf(TTFConfig(replay=9), seed=1)
    shelf.filled(batch(0, 1), 0)
    assert shelf.filled(Batch((), rollouts=8), 1).lines == ()


def test_without_replay_nothing_is_kept() -> None:
    shelf = Shelf(TTFConfig(replay=0), seed=1)
    shelf.filled(batch(1), 0)
    assert shelf.state() == []
