"""A hostile worker gains nothing by objects that carry data, nor by the test's own objects."""

import operator
from typing import Any

import pytest

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from tests.verify.in_sandbox.impostor import DESCRIPTION, Extended, Impostor, Script, call, impostor

TEXT = {**DESCRIPTION, "special": (), "base": "builtins.str"}
ROW = {**DESCRIPTION, "special": (), "base": "builtins.dict", "hashable": False}


def sends(description: dict[str, Any], *data: Any) -> Script:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9, *data)))
        worker.answer(description)
        while True:
            worker.answer(True)

    return script


WRONG = {
    "data of another type": sends(TEXT, 5),
    "no data": sends(TEXT),
    "data where there are none": sends(DESCRIPTION, "x"),
    "an unknown base": sends({**TEXT, "base": "builtins.type"}, "x"),
    "a base that is no name": sends({**TEXT, "base": 5}, "x"),
    "elements that are none": sends(ROW, [1]),
}


@pytest.mark.parametrize("script", WRONG.values(), ids=WRONG)
def test_data_that_no_class_has_end_the_connection(script: Script) -> None:
    with impostor(script) as session, pytest.raises(WireError):
        call(session)


def test_a_text_is_compared_by_its_data_alone() -> None:
    with impostor(sends(TEXT, "wrong")) as session:
        handle = call(session)
        assert isinstance(handle, str)
        assert handle != "right"
        assert handle != "right"
        assert "ig" not in handle
        assert {"right": 1}.get(handle) is None
        assert handle == "wrong"


def test_a_class_that_overrides_equality_is_not_believed_where_the_test_does_not_know_it() -> None:
    claims = {**TEXT, "special": ("__eq__", "__hash__", "__ne__")}
    with impostor(sends(claims, "wrong")) as session:
        handle = call(session)
        assert (handle == "right") is False
        assert operator.eq("right", handle) is False


def test_the_worker_cannot_choose_members_that_python_uses() -> None:
    names = (
        "__class__",
        "__getattribute__",
        "__del__",
        "__instancecheck__",
        "_gametape_number",
        "__reduce_ex__",
        "a b",
    )
    with impostor(sends({**TEXT, "methods": names, "attributes": names, "special": names}, "x")) as session:
        kind = type(call(session))
        assert not {"__class__", "__getattribute__", "__del__", "_gametape_number", "a b"} & vars(kind).keys()


def test_a_comparison_that_gives_an_object_cannot_pass_an_assertion() -> None:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.HANDLE, (5, 9)))
        worker.answer(DESCRIPTION)
        worker.answer([(False, Ellipsis)])
        worker.answer(Extended(words.HANDLE, (6, 9)))

    with impostor(script) as session:
        handle = call(session)
        with pytest.raises(TypeError, match="neither true nor false"):
            assert handle == 3


class Lent(dict[str, int]):
    """A container of the test."""


MINE = Lent(a=1)


@pytest.mark.parametrize(
    "fields", [(words.CALL, 1, (), None), (words.SPECIAL, 1, "__eq__", (MINE,), None)], ids=["later", "comparison"]
)
def test_only_containers_of_the_running_call_are_changed(fields: tuple[Any, ...]) -> None:
    def script(worker: Impostor) -> None:
        request = worker.request()
        number = request[3][1][0][1][0]
        worker.send(words.RETURN, request[1], None, (), None)
        request = worker.request()
        worker.send(words.RETURN, request[1], None, ((Extended(words.YOURS, number), {"a": 2}),), None)

    with impostor(script) as session:
        call(session, MINE)
        with pytest.raises(WireError):
            session.ask(*fields)
    assert MINE == {"a": 1}


def test_an_object_of_the_test_has_few_operations() -> None:
    def asks(*args: Any) -> Script:
        def script(worker: Impostor) -> None:
            number = worker.request()[3][1][0][1][0]
            worker.send(words.CALLBACK, 1, number, args, {})
            answer = worker.request()
            results.append(answer[0])
            worker.send(words.RETURN, 0, None, (), None)

        return script

    results: list[Any] = []
    for args in (
        ("get", "__class__"),
        ("get", "__reduce_ex__"),
        ("set", "__class__", 1),
        ("special", "__init__"),
        ("special", "__reduce__"),
        ("make", ""),
        ("nothing", "x"),
        (),
    ):
        with impostor(asks(*args)) as session:
            call(session, Lent(a=1))
    assert results == [words.RAISE] * 8


def test_a_module_of_the_library_is_not_chosen_by_the_worker() -> None:
    def script(worker: Impostor) -> None:
        worker.answer(Extended(words.MODULE, "pickle"))

    with (
        impostor(script) as session,
        session.stand_ins.asked_for("json"),
        pytest.raises(WireError),
    ):
        call(session)
