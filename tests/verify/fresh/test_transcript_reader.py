from datetime import datetime

from gametape.verify.fresh.program import OBJECT, ObjectReference
from gametape.verify.fresh.transcript_reader import greeting, read_programs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.in_sandbox.wire_values import value_kind
from gametape.verify.replay.transcript import Frame, StandIn, Transcript, write_frame
from tests.verify.fresh.frames import CLASS, FUNCTION, call, transcript

BASKET = StandIn(words.HANDLE, (7 << 20, CLASS))


def test_calls_that_share_nothing_are_programs_of_their_own() -> None:
    programs = read_programs([transcript(call("a", returned=1), call("b", returned=2))])

    assert [[step.operation for step in program.steps] for program in programs] == [
        [words.MODULE_ATTRIBUTE, words.CALL],
        [words.MODULE_ATTRIBUTE, words.CALL],
    ]
    assert {program.steps[1].fields[1] for program in programs} == {("a",), ("b",)}
    assert all(program.steps[1].function == "shop:price" for program in programs)


def test_calls_of_one_object_stay_together() -> None:
    recorded = transcript(
        (words.CALL, (CLASS, ((),), None), BASKET),
        call("a", returned=1),
        (words.METHOD, (7 << 20, "add", ("apple", 3), None), None),
        (words.GET, (7 << 20, "total"), 3),
    )

    basket, price = sorted(read_programs([recorded]), key=lambda program: -len(program.steps))

    assert [step.operation for step in basket.steps] == [words.MODULE_ATTRIBUTE, words.CALL, words.METHOD, words.GET]
    assert basket.steps[2].fields[0] == ObjectReference(1, (2, OBJECT))
    assert basket.steps[2].function == "shop:Basket.add"
    assert len(price.steps) == 2


def test_a_program_that_two_tests_have_is_read_once() -> None:
    assert len(read_programs([transcript(call("a", returned=1)), transcript(call("a", returned=1))])) == 1


def test_answers_of_a_callback_are_kept_by_its_arguments() -> None:
    function = StandIn(words.FUNCTION_OF_TEST, (0, "key", "key", None, None))
    whole = transcript(call(["b", "a"], function, returned=["a", "b"]))
    frames = list(whole.frames)
    frames[-1:-1] = [
        Frame(False, write_frame((words.CALLBACK, 0, 0, ("b",), {}))),
        Frame(True, write_frame((words.RETURN, 0, 2))),
    ]

    (program,) = read_programs([Transcript("test", tuple(frames), 0.0)])

    (recorded,) = program.callbacks.values()
    assert list(recorded.answers.values()) == [((words.RETURN, 2),)]


def test_a_request_within_a_callback_leaves_the_transcript_out() -> None:
    whole = transcript(call("a", returned=1))
    frames = list(whole.frames)
    frames[-1:-1] = [
        Frame(False, write_frame((words.CALLBACK, 0, 0, ("b",), {}))),
        Frame(True, write_frame((words.REQUEST, 9, words.CALL, (FUNCTION, ("c",), None), ()))),
        Frame(False, write_frame((words.RETURN, 9, 2, (), None))),
        Frame(True, write_frame((words.RETURN, 0, 2))),
    ]

    assert read_programs([Transcript("test", tuple(frames), 0.0)]) == []


def test_the_greeting_names_roots_modules_and_classes() -> None:
    assert greeting([transcript()]) == (("/workspace",), ("shop",), ("shop:Basket",))


def test_a_class_of_the_test_costs_only_the_programs_that_need_it() -> None:
    derived = 4 << 20
    recorded = transcript(
        (words.SUBCLASS, ("Own", (CLASS,), {}), derived),
        (words.GET, (derived, "__test__"), None),
        (words.CALL, (derived, (), None), StandIn(words.HANDLE, (7 << 20, derived))),
        (words.METHOD, (7 << 20, "add", ("apple", 3), None), None),
        call("a", returned=1),
    )

    (program,) = read_programs([recorded])

    assert [step.function for step in program.steps] == ["", "shop:price"]


def test_an_object_inside_a_value_that_cannot_be_built_is_a_reference() -> None:
    """A time whose zone is an object of the code's crosses as its parts."""
    kind = value_kind(datetime)
    assert kind is not None
    moment = Unbuilt(ord("V"), kind, ((StandIn(words.MINE, 7 << 20), 0, 1985, 4, 12, 10, 15, 0, 0),))
    recorded = transcript((words.CALL, (CLASS, (), None), BASKET), call(moment, "%H", returned="10"))

    (program,) = read_programs([recorded])

    argument = program.steps[-1].fields[1][0]
    assert isinstance(argument, Unbuilt)
    assert argument.items[0][0] == StandIn(words.MINE, ObjectReference(2, (2, OBJECT)))


def test_an_object_in_a_set_leaves_its_program_out() -> None:
    among = {StandIn(words.MINE, 7 << 20), 3}
    recorded = transcript((words.CALL, (CLASS, (), None), BASKET), call(among, returned=1))

    (program,) = read_programs([recorded])

    assert [step.operation for step in program.steps] == [words.MODULE_ATTRIBUTE, words.CALL]


def test_a_text_stands_for_an_object_of_the_test_that_the_code_keeps() -> None:
    given = StandIn(words.OBJECT_OF_TEST, (7, {"name": "Mine"}, None))
    kept = transcript(call(given, "pear", returned=[StandIn(words.YOURS, 7), "pear"]))

    (program,) = read_programs([kept])

    step = program.steps[-1]
    assert step.fields[1] == ("object 7", "pear")
    assert step.recorded[2] == ["object 7", "pear"]
