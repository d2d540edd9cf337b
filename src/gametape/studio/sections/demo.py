"""A demo as sections: what it is, its two arms, the tasks that it mined, and the two attempts in the sandbox."""

from pathlib import Path

from gametape.studio.page import ReportSection
from gametape.studio.run_files import RunFiles
from gametape.studio.sections.json_file import read_json
from gametape.studio.sections.training import training_section

DEMO_SUMMARY_FILE = "demo.json"
DEMO_ARMS = ("rlvr", "rlvr_ttf")


def demo_sections(directory: Path) -> list[ReportSection]:
    summary = read_json(directory / DEMO_SUMMARY_FILE)
    runs = [RunFiles(directory / arm) for arm in DEMO_ARMS if (directory / arm / "config.toml").is_file()]
    title = "gametape: rewards alone, and rewards with a hint at the turn that went wrong"
    sections = [ReportSection(title, "demo_head.html.jinja", {"summary": summary})]
    sections += [training_section(runs)] if runs else []
    return [*sections, ReportSection("Mined and attempted", "demo_tasks.html.jinja", {"summary": summary})]
