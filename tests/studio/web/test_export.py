"""An export is one file: the page's own scripts and answers in it, allowed by their digests, and nothing to fetch."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.studio.web import export
from gametape.studio.web.export import write_export
from gametape.studio.web.script_bundle import bundle_scripts
from gametape.studio.web.site import STATIC

from ..runs import HOSTILE, make_run, make_trajectory, score, target
from .site import Markup, browser, open_site, step_of, write_tape


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = make_run(tmp_path / "run", "rlvr_ttf", [score(0, 0.2), score(640, 0.8)], [target("large.000", 2.5, HOSTILE)])
    make_trajectory(root, "large.000", HOSTILE)
    write_tape(root / "trajectories" / "x.000.json", [step_of(1, message="</script><!--<script>" + HOSTILE)])
    return root


def scripts_of(page: str) -> list[str]:
    return re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)


def answers_of(page: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(scripts_of(page)[0])
    return answers


def test_it_has_the_answers_that_the_server_gives(run: Path, tmp_path: Path) -> None:
    written = write_export(run, tmp_path / "out.html")
    answers = answers_of(written.path.read_text())
    client = browser(open_site(tmp_path))
    assert answers["series|run||"] == client.get("/data/series?run=run").json()
    for name in ("large.000", "x.000"):
        assert answers[f"tape|run|{name}|"] == client.get(f"/data/tape?run=run&rollout={name}").json()
        steps = client.get(f"/data/steps?run=run&rollout={name}&first=0").json()
        assert answers[f"steps|run|{name}|0"] == steps
    assert (written.rollouts, written.left_out, written.size) == (2, 0, written.path.stat().st_size)


def test_only_its_own_script_may_run_and_nothing_is_fetched(run: Path, tmp_path: Path) -> None:
    page = write_export(run, tmp_path / "out.html").path.read_text()
    markup = Markup(page)
    scripts = [attributes for tag, attributes in markup.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {"type": "module"}]
    (policy,) = [attributes["content"] or "" for tag, attributes in markup.tags if "http-equiv" in attributes]
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(scripts_of(page)[1].encode()).digest()).decode()
    assert (allowed["default-src"], allowed["script-src"]) == ("'none'", f"'sha256-{digest}'")
    assert "connect-src" not in allowed
    assert not {tag for tag, _ in markup.tags} & {"img", "iframe", "link", "form", "base"}
    assert not [name for _, attributes in markup.tags for name in attributes if name.startswith("on")]
    assert "\x1b" not in page
    hrefs = [attributes["href"] or "" for _, attributes in markup.tags if "href" in attributes]
    assert {href[:1] for href in hrefs} == {"#"}
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_what_there_is_no_room_for_is_left_out_and_said(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "trajectories" / "bad.json").write_text("{")
    write_tape(run / "trajectories" / "huge.json", [step_of(n, message="x" * 9_000) for n in range(1, 40)])
    monkeypatch.setattr(export, "MOST_BYTES", 120_000)
    written = write_export(run, tmp_path / "out.html")
    assert (written.rollouts, written.left_out) == (2, 2)
    assert "2 more rollouts are not in this file" in written.path.read_text()


@pytest.mark.parametrize("kind", ["attempt", "file"])
def test_a_single_record_is_exported_too(tmp_path: Path, kind: str) -> None:
    path = write_tape(tmp_path / "attempt" / "trajectory.json", [step_of(1)], extra={"outcome": "passed"})
    written = write_export(path if kind == "file" else path.parent, tmp_path / "out.html")
    assert [key for key in answers_of(written.path.read_text()) if key.startswith("tape|")]


def test_only_an_earlier_export_is_written_over(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    write_export(run, out)
    write_export(run, out)
    out.write_text("precious")
    with pytest.raises(BadInput, match="no export"):
        write_export(run, out)
    with pytest.raises(BadInput, match="not a file"):
        write_export(run, tmp_path)
    with pytest.raises(BadInput, match="not a run"):
        write_export(tmp_path, tmp_path / "other.html")


def test_the_scripts_are_small_and_write_no_markup() -> None:
    files = [*STATIC.glob("*.js")]
    assert sum(path.stat().st_size for path in files) < 250_000
    for path in files:
        text = path.read_text()
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacent\w+|document\.write|eval\(|Function\(|https?://\S+", text
        )
        assert [word for word in found if "www.w3.org/2000/svg" not in word] == [], path.name


def test_names_are_unique_over_all_scripts() -> None:
    """One file of them all is the same program only then."""
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", bundle_scripts(STATIC), re.MULTILINE)
    names += [name for line in re.findall(r"^const (\w+ = .*, \w+ = .*);$", bundle_scripts(STATIC), re.MULTILINE)
              for name in re.findall(r", (\w+) = ", line)]  # fmt: skip
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
    assert "import " not in re.sub(r"^//.*$", "", bundle_scripts(STATIC), flags=re.MULTILINE)


@pytest.mark.skipif(shutil.which("node") is None, reason="node, which knows what JavaScript is, is not installed")
def test_the_scripts_are_javascript(tmp_path: Path) -> None:
    path = tmp_path / "bundle.mjs"
    path.write_text(bundle_scripts(STATIC))
    done = subprocess.run(["node", "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
