import json

from gametape.tasks.mining.candidates import find_candidates
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.suite_analysis import SuiteAnalysis, analysis_from_record


def test_what_was_learned_comes_back_from_a_line_of_json(site: ProjectRunner, learned: SuiteAnalysis) -> None:
    line = json.dumps(learned.to_record())
    assert "\n" not in line
    again = analysis_from_record(json.loads(line), site.project)
    assert again == learned


def test_candidates_are_the_same_after_that(site: ProjectRunner, learned: SuiteAnalysis) -> None:
    again = analysis_from_record(json.loads(json.dumps(learned.to_record())), site.project)
    number = len(learned.baseline.tests)
    assert find_candidates(again.coverage_map, number, seed=5) == find_candidates(learned.coverage_map, number, seed=5)
