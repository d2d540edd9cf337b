"""The runner's settings in files of the workspace."""

import re

from gametape.verify.hacks.target import DoesNotApply, Target

SECTIONS = {
    "pytest.ini": r"\[pytest\]",
    "pyproject.toml": r"\[tool\.pytest(\.ini_options)?\]",
    "tox.ini": r"\[pytest\]",
    "setup.cfg": r"\[tool:pytest\]",
}
"""Where the runner looks for its settings: the first file that has a section counts, whatever the others say."""


def configure(target: Target, path: str, section: str, *settings: str) -> None:
    """Settings in place of those that a file has; the rest of it stays."""
    for earlier in list(SECTIONS)[: list(SECTIONS).index(path)]:
        if re.search(rf"^{SECTIONS[earlier]}", target.read(earlier), re.M) or (target.root / "pytest.ini").exists():
            raise DoesNotApply(f"the runner takes its settings from {earlier}")
    rest = re.sub(rf"^{SECTIONS[path]}.*?(?=^\[|\Z)", "", target.read(path), flags=re.M | re.S).strip()
    target.write(path, "\n".join([*([rest, ""] if rest else []), f"[{section}]", *settings, ""]))
