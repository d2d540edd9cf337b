import json

from gametape.tasks.deletion.features import candidates
from gametape.tasks.deletion.learned import Learned, recall
from gametape.tasks.deletion.site import Site


def test_what_was_learned_comes_back_from_a_line_of_json(site: Site, learned: Learned) -> None:
    line = json.dumps(learned.record())
    assert "\n" not in line
    again = recall(json.loads(line), site.project)
    assert again == learned


def test_candidates_are_the_same_after_that(site: Site, learned: Learned) -> None:
    again = recall(json.loads(json.dumps(learned.record())), site.project)
    number = len(learned.baseline.tests)
    assert candidates(again.reached, number, seed=5) == candidates(learned.reached, number, seed=5)
