"""What all pages share: where runs are found, what was read of them, and how a template becomes an answer."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from gametape.studio.page import PageBudget, short_model, template_environment
from gametape.studio.web.catalogue import HOME_PREFIX, RunCatalogue
from gametape.studio.web.curves import CurveStore
from gametape.studio.web.rollout_table import RolloutFactStore
from gametape.studio.web.tape import TapeStore
from gametape.studio.web.target_log import TargetLogStore
from gametape.studio.web.token_texts import TokenTextStore

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class StudioSite:
    """One server's state. `form_secret` is in every form that changes something, and nowhere else."""

    catalogue: RunCatalogue
    database: str | None = None
    curves: CurveStore = field(default_factory=CurveStore)
    tapes: TapeStore = field(default_factory=TapeStore)
    rollouts: RolloutFactStore = field(default_factory=RolloutFactStore)
    targets: TargetLogStore = field(default_factory=TargetLogStore)
    texts: TokenTextStore = field(default_factory=TokenTextStore)
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @cached_property
    def templates(self) -> jinja2.Environment:
        return studio_templates()

    def page(self, template: str, status: int = 200, **data: Any) -> HTMLResponse:
        return HTMLResponse(self.templates.get_template(template).render(**data), status)


def studio_templates() -> jinja2.Environment:
    """The pages' templates, with what they show made printable and escaped."""
    templates = template_environment(PageBudget(), [TEMPLATES])
    templates.filters |= {
        "cut": show_beginning,  # that of a report takes from what one page may have
        "number": show_number,
        "ago": show_ago,
        "bytes": show_bytes,
        "query": show_query,
        "short_name": show_name,
        "short_model": short_model,
    }
    return templates


def site_of(request: Request) -> StudioSite:
    site: StudioSite = request.app.state.site
    return site


def show_beginning(text: str, most: int = 6_000) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most:,} more characters)"


def show_name(run: str) -> str:
    """A run as people call it: what is of a home needs no more than its place in it."""
    return run.removeprefix(HOME_PREFIX)


def show_number(value: Any) -> str:
    """A figure in a table: short, or a dash where there is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "-"
    if isinstance(value, float) and (abs(value) < 1000 or not value.is_integer()):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{int(value):,}"


def show_ago(moment: Any) -> str:
    """A moment as how long ago it was."""
    seconds = time.time() - moment if isinstance(moment, int | float) and moment else None
    if seconds is None:
        return "-"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"


def show_bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB" if size >= 1e3 else f"{size} B"


def show_query(values: Mapping[str, Any]) -> str:
    """The part of an address behind the question mark."""
    return urlencode(values)
