"""An object cannot pass by claiming to equal whatever it is compared with. The test plays the worker itself."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_decoys import among_decoys
from gametape.verify.in_sandbox.proxy_session import ProxySession
from gametape.verify.in_sandbox.wire import WireError
from tests.verify.in_sandbox.impostor import DESCRIPTION, Extended, Impostor, Script, call, impostor


def handle_that(outcome: Callable[[int], Any], mentioned: bool = True) -> tuple[Script, Callable[[ProxySession], Any]]:
    """A handle whose comparisons have this outcome by candidate, and how the test gets it."""

    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9)))
        worker.answer(DESCRIPTION)
        while True:
            request = worker.request()
            if request[2] == words.EQUALS:
                value = [(False, outcome(index)) for index, _ in enumerate(request[3][1])]
            else:
                value = outcome(0)
            worker.send(words.RETURN, request[1], value, (), None)

    def get(session: ProxySession) -> Any:
        handle = call(session)
        if mentioned:
            session.stand_ins.classes.mention(type(handle))
        return handle

    return script, get


def test_an_object_that_equals_everything_is_unmasked() -> None:
    script, get = handle_that(lambda _: True)
    with impostor(script) as session:
        handle = get(session)
        for value in (3, 1.5, "text", [1, 2], {"a": 1}, (), None, True, {1}, b"x", math.nan):
            with pytest.raises(TypeError, match="values that differ"):
                assert handle == value
        with pytest.raises(TypeError, match="values that differ"):
            assert handle in [1, 2, 3]
        with pytest.raises(TypeError, match="values that differ"):
            assert handle == pytest.approx(3)


@pytest.mark.parametrize(
    "name",
    ["__array__", "__array_interface__", "__array_struct__", "__cuda_array_interface__", "__dlpack__", "__buffer__"],
)
def test_no_object_is_taken_for_memory(name: str) -> None:
    """A library that is given an address by hostile code would read the memory of the tests."""
    script, get = handle_that(lambda _: True)
    with impostor(script) as session:
        handle = get(session)
        assert not hasattr(handle, name)
        assert not hasattr(type(handle), name) or name in dir(type)


def test_an_object_that_guesses_is_mostly_wrong() -> None:
    script, get = handle_that(lambda index: index == 0)
    with impostor(script) as session:
        handle = get(session)
        assert 108 < sum(handle == 3 for _ in range(900)) < 252  # a fifth, and six standard deviations


def test_an_object_of_a_class_the_test_never_took_equals_no_plain_data() -> None:
    script, get = handle_that(lambda _: True, mentioned=False)
    with impostor(script) as session:
        handle = get(session)
        assert handle != 3
        assert handle != [1]


def test_special_methods_answer_in_exact_types() -> None:
    script, get = handle_that(lambda _: "yes")
    with impostor(script) as session:
        handle = get(session)
        for action in (bool, len, hash, lambda handle: handle == 3):
            with pytest.raises(TypeError):
                action(handle)


def test_a_comparison_cannot_change_what_is_expected() -> None:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9)))
        worker.answer(DESCRIPTION)
        worker.answer([(False, False)] * 5, updates=((0, ["changed"]),))

    with impostor(script) as session:
        handle = call(session)
        session.stand_ins.classes.mention(type(handle))
        expected = [1, 2]
        with pytest.raises(WireError):
            assert handle == expected
        assert expected == [1, 2]


@pytest.mark.parametrize(
    "value",
    [0, 1.5, "", "abc", "A1", b"", b"x", [], [1, [2]], (), ("a",), {}, {"a": 1}, set(), {1, 2}, True, None, math.inf],
)
def test_decoys_have_the_shape_and_differ(value: Any) -> None:
    for _ in range(20):
        chain, place = among_decoys(value)
        found = [each for number, each in enumerate(chain) if number != place]
        assert chain[place] is value
        assert found
        assert all(each != value for each in found)
        assert value is None or all(type(each) is type(value) for each in found)


def test_the_real_value_is_not_the_one_most_like_the_others() -> None:
    """Who says that the middle one is meant must be wrong most of the time."""

    def distance(one: str, other: str) -> int:
        return sum(a != b for a, b in zip(one, other, strict=True))

    right = 0
    for _ in range(400):
        chain, place = among_decoys("a fairly long expected text")
        middle = min(range(len(chain)), key=lambda n: sum(distance(chain[n], each) for each in chain))
        right += middle == place
    assert right < 200
