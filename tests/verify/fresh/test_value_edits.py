import datetime
import random
import re
from typing import Any

from gametape.verify.fresh.corpus import ValueCorpus
from gametape.verify.fresh.program_edits import draw_program
from gametape.verify.fresh.strategies import draw_values, infer_strategy
from gametape.verify.fresh.transcript_reader import read_programs
from gametape.verify.fresh.value_edits import ValueEdits
from tests.verify.fresh.frames import call, transcript

PLACE = ("shop:price", 0)


def edited(*seen: Any, count: int = 200) -> list[Any]:
    """New values for a parameter at which these were seen."""
    corpus = ValueCorpus()
    corpus.learn(read_programs([transcript(call(value, number, returned=0)) for number, value in enumerate(seen)]))
    edits = ValueEdits(corpus, {}, random.Random(1))
    return [edits.edit(random.Random(number).choice(seen), PLACE) for number in range(count)]


def test_types_stay_and_values_change() -> None:
    for seen in (("1h 30m", "2d"), (3, 17), (1.5, 2.25), ([1, 2, 3], [4]), ({"a": 1}, {"a": 2}), (b"ab-12",)):
        new = edited(*seen)
        assert {type(value) for value in new} == {type(seen[0])}
        assert len({repr(value) for value in new} - {repr(value) for value in seen}) > 5


def test_none_comes_only_where_it_was_seen() -> None:
    assert None not in edited("a b", "c d")
    assert None in edited("a b", None)


def test_negative_numbers_come_only_where_one_was_seen() -> None:
    assert min(edited(3, 5, 40)) >= 0
    assert min(edited(3, -5, 40)) < 0


def test_fields_keep_their_names() -> None:
    new = edited({"name": "ann", "age": 7}, {"name": "bob", "age": 31})

    assert {tuple(sorted(value)) for value in new} == {("age", "name")}
    assert all(type(value["name"]) is str and type(value["age"]) is int for value in new)


def test_a_date_stays_a_date() -> None:
    dates = [text for text in edited("2024-02-29", "2023-12-31") if re.fullmatch(r"\d{4}-\d\d-\d\d", text)]

    assert len(set(dates)) > 20
    for text in dates:
        datetime.date.fromisoformat(text)


def test_units_stay_units() -> None:
    letters = {letter for text in edited("1h 30m", "2d 4h", "45s", "10m 5s") for letter in text if letter.isalpha()}

    assert letters == set("hmds")


def test_names_of_options_are_chosen_among_those_seen() -> None:
    assert set(edited(*["grid", "plain", "html"] * 3)) <= {"grid", "plain", "html"}


def test_the_same_seed_draws_the_same_program() -> None:
    programs = read_programs([transcript(call("1h 30m", returned=90)), transcript(call("2d", returned=2))])
    corpus = ValueCorpus()
    corpus.learn(programs)

    drawn = [repr([draw_program(programs[0], corpus, {}, random.Random(seed)) for _ in range(9)]) for seed in (5, 5, 6)]

    assert drawn[0] == drawn[1] != drawn[2]


def test_a_recorded_call_is_never_drawn() -> None:
    programs = read_programs([transcript(call(number, returned=0)) for number in range(4)])
    corpus = ValueCorpus()
    corpus.learn(programs)
    rng = random.Random(2)

    drawn = [draw_program(programs[0], corpus, {}, rng) for _ in range(200)]

    assert not {program.steps[-1].fields[1][0] for program in drawn if program} & set(range(4))


def test_hypothesis_keeps_the_pattern_of_what_was_seen() -> None:
    corpus = ValueCorpus()
    corpus.learn(read_programs([transcript(call(text, returned=0)) for text in ("v1.20.3", "v2.0.11")]))
    strategy = infer_strategy(corpus, PLACE)
    assert strategy is not None

    drawn = draw_values(strategy, 30, 4)

    assert len(drawn) > 10
    assert all(re.fullmatch(r"v\d\.\d{1,2}\.\d{1,2}", text) for text in drawn)
    assert drawn == draw_values(strategy, 30, 4)


def test_a_value_that_changes_everywhere_keeps_out_of_places_that_do_not_admit_it() -> None:
    given = [(4, -5), (3, 4), (3, -4), (6, 7), (5, [8, -9]), (2, [5, -5])]
    programs = read_programs([transcript(call(*arguments, returned=0)) for arguments in given])
    corpus = ValueCorpus()
    corpus.learn(programs)
    rng = random.Random(3)

    drawn = [draw_program(program, corpus, {}, rng) for program in programs for _ in range(1500)]
    arguments = [program.steps[-1].fields[1] for program in drawn if program]

    assert min(first for first, _ in arguments) > 0
    assert any(first == second for first, second in arguments)


def test_a_text_of_any_length_has_a_strategy() -> None:
    long = "1.0." + "7" * 5000
    corpus = ValueCorpus()
    corpus.learn(read_programs([transcript(call(text, returned=0)) for text in (long, "1.2.3", "4.5.6-rc.1")]))
    strategy = infer_strategy(corpus, PLACE)
    assert strategy is not None

    drawn = draw_values(strategy, 60, 1)

    assert {len(text) for text in drawn} <= {len(long), *range(12)}
    assert len(set(drawn)) > 10
