"""Several evaluations beside each other: their rates, success against horizon, and survival by step, with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.studio.page import printable_text
from gametape.studio.sections.json_file import read_json
from gametape.studio.step_view import amount, mapping, mappings, tame_numbers, text_of
from gametape.studio.web.pages import EVAL_TABS, requested_names
from gametape.studio.web.site import show_name, site_of

_MOST_POINTS = 2_000


@dataclass(frozen=True)
class ShownEvaluation:
    """`report` is empty where the evaluation has not ended."""

    name: str
    label: str
    report: Mapping[str, Any]

    @property
    def success(self) -> Mapping[str, Any]:
        return mapping(self.report.get("success"))

    @property
    def cost(self) -> Mapping[str, Any]:
        return mapping(self.report.get("cost_per_success"))


def evaluations_routes() -> list[Route]:
    return [Route("/evaluations", show_evaluations)]


def show_evaluations(request: Request) -> Response:
    site, names = site_of(request), requested_names(request)
    shown = []
    for name in names:
        run = site.catalogue.find(name)
        if run.place.kind != "eval":
            raise BadInput(f"{run.name}: no evaluation, so it is not put beside others")
        report = mapping(tame_numbers(read_json(run.place.path / "report.json")))
        model = text_of(report.get("model"))[:100].rpartition("/")[2]
        label = printable_text(f"{show_name(run.name)[:100]}{f', {model}' if model else ''}")
        shown.append(ShownEvaluation(run.name, label, report))
    suites = sorted({text_of(one.report.get("suite_digest")) for one in shown if one.report})
    return site.page(
        "evaluations.html.jinja",
        title="Evaluations beside each other",
        page="evaluations",
        run=names[0] if len(names) == 1 else None,
        tabs=EVAL_TABS,
        evaluations=shown,
        suites=suites,
        charts=_charts(shown),
    )


def _charts(shown: Sequence[ShownEvaluation]) -> list[dict[str, Any]]:
    kinds = (
        ("Success against horizon, with its 95 % interval", "by_horizon", "horizon", "rate"),
        ("Attempts still on track, by step", "survival", "step", "s"),
    )
    charts = []
    for title, key, against, value in kinds:
        lines = [_line(one, key, against, value) for one in shown]
        if any(line["points"] for line in lines):
            charts.append({"title": title, "lines": lines, "range": [0, 1], "xLabel": against})
    return charts


def _line(one: ShownEvaluation, key: str, against: str, value: str) -> dict[str, Any]:
    """The points that have a place and a value, in order, and the interval around each that has one."""
    rows = [row for row in mappings(one.report.get(key)) if _is_number(row.get(against)) and _is_number(row.get(value))]
    rows = sorted(rows, key=lambda row: amount(row[against]))[:_MOST_POINTS]
    band = [row for row in rows if _is_number(row.get("low")) and _is_number(row.get("high"))]
    return {
        "name": one.label,
        "points": [[row[against], row[value]] for row in rows],
        "band": [[row[against], row["low"], row["high"]] for row in band],
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
