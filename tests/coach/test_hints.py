"""A hint states a rule in one line, and one that gives the answer away is refused."""

import pytest

from gametape.coach.complaints import generalise, parse_complaints
from gametape.coach.hints import FIXED_HINTS, LeakChecker, hint_from_complaint, leak_checker_from_files
from gametape.tasks.worlds.experts import perfect_expert, script_episode
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World


def test_several_complaints_in_one_answer_are_told_apart_from_what_else_it_says():
    text = "error at f3 : a sealed file takes patch , not write , error : no such name , next put red into file f4"
    first, second = parse_complaints(text)
    assert (first.sentence, "f3" in first.about, first.instead) == ("a sealed file takes patch", True, {"write"})
    assert (second.sentence, second.states_a_rule) == ("no such name", False)


@pytest.mark.parametrize(
    ("sentence", "names", "becomes"),
    [
        ("no red in it", {"red"}, "no such thing in it"),
        ("there is no src/a.py", (), "there is no such thing"),
        ("argument 'depth' must be at least 3, not 0", (), "argument must be at least 3"),
        ("name 'x_1' is not defined", (), "name is not defined"),
        ("read_file needs a path", (), "read_file needs a path"),
        ("the table users_v2 is locked", (), "the table is locked"),
        ("file2.txt", (), ""),
    ],
)
def test_names_and_values_of_the_instance_go(sentence, names, becomes):
    assert generalise(sentence, names, {"read_file"}) == becomes


def test_a_long_complaint_becomes_one_short_line():
    (complaint,) = parse_complaints("error : a file must be " + "very " * 60 + "small\nand more")
    _, hint = hint_from_complaint(complaint, ())
    assert len(hint.split()) <= 20


SOLUTION = '''
def merge_spans(spans):
    """Join what touches."""
    ordered = sorted(spans, key=lambda span: span.start)
    return fold_left(ordered, "overlap")
'''


def test_a_hint_that_holds_the_solutions_tokens_is_refused():
    reference = leak_checker_from_files([SOLUTION], ["Write merge_spans(spans), which joins spans that touch. start"])
    assert reference.leak("rule : sort before you fold_left") == "fold_left"
    assert reference.leak("rule : keep what is ordered") == "ordered"
    assert reference.leak("rule : call it overlap") == "overlap"
    assert reference.leak('do this: return fold_left(ordered, "overlap")')
    assert reference.leak("rule : merge_spans takes spans") == ""  # it was told so
    assert reference.leak("rule : join what touches") == ""  # prose is no token of the solution
    assert not any(reference.leak(hint) for hint in FIXED_HINTS)


def test_lines_count_where_single_names_do_not():
    reference = leak_checker_from_files(["x = a + b + c\n"], ["a b c x"])
    assert reference.leak("rule : x = a +  b + c") == "x=a+b+c"
    assert reference.leak("rule : add a , b and c") == ""


@pytest.mark.parametrize(
    ("hint", "held"),
    [
        ("rule : cut it to at most 73 characters", "73"),
        ("rule : divide by 2.75", "2.75"),
        ("rule : text [ 4 : ] [ ::-1 ] , as it were", "text[4:][::-1]"),
        ('rule : give back text[4:][::-1] + "..?"', "text[4:][::-1]+'..?'"),
        ("rule : match [^a-z0-9]+$ there", "[^a-z0-9]+$"),
        ("rule : turn text round in reversed order", ""),
        ("rule : at most 80 characters", ""),
    ],
)
def test_numbers_and_parts_of_lines_give_an_answer_away_too(hint, held):
    solution = """def cut(text):
    pattern = "[^a-z0-9]+$"
    if len(text) / 2.75 > 73 or 80 < 4 or reversed:
        return text[4:][::-1] + '..?'
"""
    assert leak_checker_from_files([solution], ["pattern def cut(text): a line has 80 characters"]).leak(hint) == held


def test_no_solution_is_too_deep_to_be_looked_at():
    sums = " + ".join(["total"] * 900)
    assert leak_checker_from_files([f"x = {sums}"], ["x total"]).leak(f"rule : {sums}")


def test_what_would_command_a_terminal_is_never_said():
    (complaint,) = parse_complaints("error : a file must \x1bc be \u202ekept\u202c closed")
    assert hint_from_complaint(complaint, ())[1] == "rule : a file must be closed"


def test_the_arguments_of_the_right_call_are_the_answer():
    world = World(WorldSpec(seed=2, load_bearing=2))
    acts = [act for act in script_episode(world, perfect_expert) if act.job.marking]
    reference = LeakChecker(calls=tuple(frozenset(act.action.values) for act in acts))
    for act in acts:
        assert reference.leak(f"rule : {act.action.tool} {' '.join(act.action.values)}")
        assert reference.leak(act.job.hint()) == ""
