"""What the documents claim and the code can confirm."""

import re
import tomllib
from pathlib import Path

from gametape.sandbox.hardening_measures import HARDENING_MEASURES
from gametape.sandbox.policy import SandboxPolicy

ROOT = Path(__file__).parents[1]


def test_the_measures_in_the_docs_are_the_measures() -> None:
    table = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", (ROOT / "docs/sandbox.md").read_text(), re.MULTILINE))
    assert table == HARDENING_MEASURES


def test_the_policy_in_the_docs_is_a_policy() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/sandbox.md").read_text(), re.DOTALL)
    assert SandboxPolicy.model_validate(tomllib.loads(example)).limits.wall_seconds == 60


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]:
        for target, _, anchor in re.findall(r"\]\((?!http)([^)#\s]*)(#([^)\s]*))?\)", document.read_text()):
            path = document.parent / target if target else document
            assert path.exists(), f"{document.name} points to {target}"
            if anchor and path.suffix == ".md":
                headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
                assert anchor in map(_anchor, headings), f"{document.name} points to {target}#{anchor}"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_page_is_in_the_index_and_begins_with_its_question() -> None:
    pages = {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}
    index = (ROOT / "docs/README.md").read_text()
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages
    for name in pages:
        title, empty, question, after, *_ = (ROOT / "docs" / name).read_text().splitlines()
        assert (title[:2], empty, question[:2], question[-1], after) == ("# ", "", "> ", "?", ""), name


def test_the_readme_has_the_commands_of_the_quickstart() -> None:
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/quickstart.md"))
    (commands,) = re.findall(r"```\n(\$ git clone .*?)```", page, re.DOTALL)
    assert len(commands.splitlines()) == 5
    for command in commands.splitlines():
        assert re.search(rf"^ +{re.escape(command)}( +#.*)?$", readme, re.MULTILINE), command


def test_every_picture_of_the_docs_is_shown_somewhere() -> None:
    text = "".join(page.read_text() for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    pictures = [*ROOT.glob("docs/**/*.svg"), *ROOT.glob("docs/**/*.png")]
    assert [picture.name for picture in pictures if picture.name not in text] == []
