"""Parts are dealt so that all ranks make as many passes of each kind, and each part counts once."""

from itertools import chain

import pytest

from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainSample
from gametape.train.ranks import Ranks
from gametape.train.rollouts import DistillTarget

TARGET = DistillTarget(start=1, length=1, shared_prefix=1, hint_ids=(5,), kind="k", text="t", step=1)


def sample(length: int, hinted: bool) -> TrainSample:
    segment = TokenSegment([0] * length, [0, *[1] * (length - 1)], [0.0] * length, [0] * length, [0] * length)
    return TrainSample(segment, 0, targets=(TARGET,) if hinted else ())


def rank_of(rank: int, world: int) -> Ranks:
    ranks = Ranks()
    ranks.rank, ranks.world = rank, world
    return ranks


def has_targets(samples: list[TrainSample]) -> bool:
    return any(each.targets for each in samples)


PARTS = [
    [sample(9, False), sample(3, False)],
    [sample(7, True), sample(2, False)],
    [sample(4, False)],
    [sample(5, True)],
    [sample(6, True)],
]


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_every_part_counts_once_and_all_ranks_make_the_same_passes(world: int) -> None:
    dealt = [rank_of(rank, world).deal(PARTS, has_targets) for rank in range(world)]
    counting = [part.samples for part in chain(*dealt) if part.counts]
    assert sorted(map(id, counting)) == sorted(map(id, PARTS))
    kinds = [[has_targets(part.samples) for part in mine] for mine in dealt]
    assert all(mine == kinds[0] for mine in kinds)
    assert all(len(part.samples) == 1 for part in chain(*dealt) if not part.counts)


def test_company_is_the_smallest_sample_of_its_kind() -> None:
    last = rank_of(1, 2).deal(PARTS, has_targets)
    assert [(len(part.samples[0].segment.ids), part.counts) for part in last] == [(5, True), (5, False), (4, True)]


def test_one_process_has_all_parts_and_nothing_to_wait_for() -> None:
    assert [part.counts for part in Ranks().deal(PARTS)] == [True] * 5
    assert Ranks().gather(3) == [3]
    assert Ranks().deal([]) == []
