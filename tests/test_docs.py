"""What the documents claim and the code can confirm."""

import re
import tomllib
from pathlib import Path

from gametape.core.user_config import UserConfig
from gametape.record.config_file import parse_config
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
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} points to {target}"


def test_the_configuration_in_the_docs_is_one() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/configuration.md").read_text(), re.DOTALL)
    config = parse_config(example.encode(), Path("config.toml"), UserConfig)
    assert config.models["fast"].model == "work:some-model"
    sections = (config, config.budgets, config.models["fast"], config.providers["work"])
    assert [set(type(section).model_fields) - section.model_fields_set for section in sections] == [set()] * 4
