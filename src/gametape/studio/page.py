"""The page of a report: one HTML file without a script, with everything escaped and nothing fetched.

The template escapes what a model, a tool or a task wrote; the charts escape their own text. The content security policy
forbids scripts and requests. `PageBudget` keeps the page small however large the runs are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import jinja2
from markupsafe import Markup

from gametape.studio.call_parts import call_parts, is_diff

T = TypeVar("T")

GENERATOR = "gametape report"
_LONGEST_TEXT = 6_000
_SHORT_LINES, _SHORT_CHARACTERS = 6, 600


@dataclass
class PageBudget:
    """What one page may still take. `left_out` is how many steps it had no room for."""

    steps: int = 2_000
    characters: int = 2_000_000
    left_out: int = 0

    def take(self, steps: Sequence[T], most: int) -> "StepSelection[T]":
        """Steps from the beginning and the end, at most `most` of them and at most what is left."""
        room = min(most, self.steps)
        self.steps -= min(room, len(steps))
        if len(steps) <= room:
            return StepSelection(list(steps))
        first = room - room // 2
        self.left_out += len(steps) - room
        return StepSelection(list(steps[:first]), len(steps) - room, list(steps[len(steps) - room // 2 :]))

    def cut(self, text: str, most: int = _LONGEST_TEXT) -> str:
        """The text, or its beginning with how much is missing."""
        room = max(0, min(most, self.characters))
        self.characters -= min(len(text), room)
        return text if len(text) <= room else f"{text[:room]} ... ({len(text) - room:,} more characters)"


@dataclass(frozen=True)
class StepSelection(Generic[T]):
    first: list[T]
    left_out: int = 0
    last: list[T] = field(default_factory=list)


@dataclass(frozen=True)
class ReportSection:
    """A part of the page: the template that draws it, and the data it draws."""

    title: str
    template: str
    data: dict[str, Any]


def render_page(title: str, sections: Sequence[ReportSection], budget: PageBudget) -> str:
    page = template_environment(budget).get_template("page.html.jinja")
    return page.render(title=title, sections=sections, budget=budget, generator=GENERATOR)


def template_environment(budget: PageBudget, more: Sequence[Path] = ()) -> jinja2.Environment:
    """Templates that escape everything and make it printable; those in the directories `more` come first."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*more, Path(__file__).parent / "templates"]),
        autoescape=True,
        finalize=_printable,
        undefined=jinja2.ChainableUndefined,  # files of other makers lack fields
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "cut": budget.cut,
        "share": _share,
        "duration": duration,
        "call_parts": call_parts,
        "is_diff": lambda text: is_diff(text.splitlines()),
        "is_short": _is_short,
        "diff_class": _diff_class,
    }
    return templates


def printable_text(text: str) -> str:
    """The text without characters that control a terminal or the direction of writing."""
    return "".join(char if char.isprintable() or char in "\n\u00a0" else "?" for char in text.expandtabs(4))


def short_model(model: str) -> str:
    """A model that is a path by the end of it: the rest says where somebody keeps it."""
    prefix, colon, path = model.rpartition(":")
    parts = path.split("/")
    return f"{prefix}{colon}.../{'/'.join(parts[-2:])}" if path.startswith("/") and len(parts) > 3 else model


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _printable(value: Any) -> Any:
    """Escaping comes after this."""
    return printable_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _share(value: Any) -> str:
    return f"{value:.1%}" if isinstance(value, int | float) else "-"


def _is_short(text: str) -> bool:
    return len(text) <= _SHORT_CHARACTERS and text.strip("\n").count("\n") < _SHORT_LINES


def _diff_class(line: str) -> str:
    return {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "")
