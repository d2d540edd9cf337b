"""The report is one file without a way out of it, whatever was written into the runs."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.studio.report import write_report
from gametape.studio.rollout_view import most_changed_rollout
from gametape.studio.run_files import RunFiles
from gametape.studio.run_place import find_place

from .runs import HOSTILE, make_run, make_trajectory, score, target

ARMS = ("rlvr", "rlvr_ttf")


def report_on(root: Path) -> Path:
    """The report on both arms below a directory."""
    return write_report([find_place(root / arm, root) for arm in ARMS], root / "report.html").path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    make_run(tmp_path / "rlvr", "rlvr", [score(0, 0.2), score(640, 0.3)])
    kept = [target("unkept", 9.0), target("small", 0.5), target("large", 2.5, HOSTILE)]
    root = make_run(tmp_path / "rlvr_ttf", "rlvr_ttf", [score(0, 0.2), score(640, 0.8)], kept)
    make_trajectory(root, "small")
    make_trajectory(root, "large", HOSTILE)
    return tmp_path


class Page(HTMLParser):
    """Every tag and attribute, and the text as a reader sees it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_nothing_in_it_runs_or_is_fetched(runs: Path) -> None:
    page = Page(report_on(runs))
    assert not page.tags & {"script", "img", "link", "iframe", "object", "base", "form", "a"}
    assert not {name for name in page.attributes if name.startswith("on")} | (page.attributes & {"src", "href"})
    source = (runs / "report.html").read_text().replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in source
    assert "https://" not in source
    assert "@import" not in source
    assert "\x1b" not in source


def test_it_answers_and_shows_what_the_answer_rests_on(runs: Path) -> None:
    page = Page(report_on(runs))
    assert "RLVR+TTF ended 50.0 points above RLVR" in page.text
    assert {"svg", "polyline"} <= page.tags
    assert "80.0%" in page.text
    assert "prefers-color-scheme: dark" in (runs / "report.html").read_text()


def test_the_target_turn_is_marked_with_its_hint_and_tokens(runs: Path) -> None:
    page = Page(report_on(runs))
    assert page.ids == ["target"]
    assert f"coach: {HOSTILE[:20]}" in page.text
    for shown in ("tool error, seen at step 3", "2.500", "-3.000", "mark\xa00.950", "advantage of -0.250"):
        assert shown in page.text


def test_a_report_without_a_gain_says_so(tmp_path: Path) -> None:
    for arm in ARMS:
        make_run(tmp_path / arm, arm, [score(0, 0.2), score(640, 0.3)])
    page = Page(report_on(tmp_path))
    assert "RLVR+TTF did not gain over RLVR in this run" in page.text
    assert "No rollout with a target was kept" in page.text


def test_runs_that_were_cut_off_still_make_a_report(tmp_path: Path) -> None:
    make_run(tmp_path / "rlvr", "rlvr", [score(0, 0.2)])
    make_run(tmp_path / "rlvr_ttf", "rlvr_ttf", [])
    with (tmp_path / "rlvr" / "metrics.jsonl").open("a") as log:
        log.write('{"kind": "eval", "st')
    assert "no two scored runs" in Page(report_on(tmp_path)).text


def test_the_tape_is_of_the_kept_rollout_that_the_hint_moved_most(runs: Path) -> None:
    tape = most_changed_rollout(RunFiles(runs / "rlvr_ttf"))
    assert tape is not None
    assert (tape.name, tape.target, [step.number for step in tape.steps]) == ("large", 2, [1, 2, 3])
    assert [token.text for token in tape.tokens] == ["pack", HOSTILE]
    assert tape.tokens[0].share == 1.0


def test_a_rollout_is_looked_for_among_the_kept_ones_only(runs: Path) -> None:
    assert RunFiles(runs / "rlvr_ttf").trajectory("../trajectories/large") is None


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("targets.jsonl", '{"a": 1}\n', "targets.jsonl, line 1: not a record of a target: no ids"),
        ("metrics.jsonl", '{"kind": "eval", "success": NaN, "episodes": 8}\n', "score in it is no number"),
        ("metrics.jsonl", '{"kind": "eval"}\n', "score in it is no number"),
        ("start/tokenizer.json", "{}", "tokenizer.json: not a tokenizer"),
    ],
)
def test_files_that_no_run_leaves_are_said_in_one_line(runs: Path, name: str, text: str, says: str) -> None:
    (runs / "rlvr_ttf" / name).write_text(text)
    with pytest.raises(BadInput, match=says):
        report_on(runs)


def test_targets_on_a_tape_that_are_none_are_said_in_one_line(runs: Path) -> None:
    path = runs / "rlvr_ttf" / "trajectories" / "large.json"
    told = json.loads(path.read_text())
    told["extra"]["gametape"]["targets"] = [{"x": 1}]
    path.write_text(json.dumps(told))
    with pytest.raises(BadInput, match=r"extra\.gametape\.targets: "):
        report_on(runs)
