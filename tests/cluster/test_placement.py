import pytest

from gametape.cluster.placement import Resources, fewer_ranks, parts_that_fit, require_room
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput


def config(**changes: object) -> RunConfig:
    return RunConfig.model_validate({"arm": "rlvr", "tasks": "worlds:easy", **changes})


def test_large_parts_find_their_place_before_small_ones() -> None:
    nodes = [Resources(8, 1), Resources(8, 2)]
    assert parts_that_fit(nodes, [Resources(1, 1)] * 3) == 3
    assert parts_that_fit(nodes, [Resources(1, 1)] * 4) == 3
    assert parts_that_fit(nodes, [*[Resources(1)] * 12, *[Resources(2, 1)] * 2]) == 14
    assert parts_that_fit([Resources(3), Resources(3)], [Resources(2)] * 3) == 2


def test_shares_of_a_processor_add_up() -> None:
    assert parts_that_fit([Resources(1)], [Resources(0.1)] * 11) == 10


def test_what_fits_is_let_through() -> None:
    require_room([Resources(4)], config(ranks=2, cluster={"samplers": 2}))


@pytest.mark.parametrize(
    ("nodes", "changes", "said"),
    [
        ([Resources(2)], {"ranks": 2}, "2 ranks with 1 CPU each and 1 sampler with 1 CPU each do not fit on 1 node"),
        ([], {}, "do not fit on 0 nodes (no node)"),
        ([Resources(64)], {"cluster": {"rank_gpus": 1}}, "1 rank with 1 CPU and 1 GPU each"),
        ([Resources(4, 1), Resources(4, 1)], {"cluster": {"sampler_gpus": 2}}, "(4 CPU and 1 GPU; 4 CPU and 1 GPU)"),
    ],
)
def test_what_would_wait_for_ever_is_refused_in_one_line(
    nodes: list[Resources], changes: dict[str, object], said: str
) -> None:
    with pytest.raises(BadInput) as error:
        require_room(nodes, config(**changes))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("ranks", "replicas", "room", "left"),
    [
        (4, 1, 4, (4, 1)),
        (4, 1, 3, (3, 1)),
        (8, 2, 7, (4, 1)),
        (8, 4, 6, (6, 3)),
        (8, 2, 3, (3, 1)),
        (2, 2, 1, (1, 1)),
    ],
)
def test_a_learner_goes_on_with_whole_copies_where_one_fits(
    ranks: int, replicas: int, room: int, left: tuple[int, int]
) -> None:
    assert fewer_ranks(ranks, replicas, room) == left
