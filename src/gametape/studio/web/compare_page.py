"""Rollouts aligned: the siblings of a prompt, and any two of one task, also of different runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.studio.web.alignment import MOST_SIDES, RolloutAlignment, align
from gametape.studio.web.catalogue import FoundRun, RolloutFile, find_rollout, group_of, rollout_files
from gametape.studio.web.pages import newest_facts, page_tabs, requested_run, tape_address
from gametape.studio.web.rollout_table import RolloutFacts
from gametape.studio.web.site import StudioSite, show_name, site_of

_MOST_OFFERED = 40


@dataclass(frozen=True)
class AlignedSide:
    """One column: what the rollout came to, and where its tape is."""

    label: str
    run: FoundRun
    fact: RolloutFacts

    def address(self, step: int) -> str:
        return tape_address(self.run)(self.fact.name, step)


def compare_routes() -> list[Route]:
    return [Route("/group", show_group), Route("/compare", show_compare)]


def show_group(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    group = request.query_params.get("group", "")
    files = [file for file in rollout_files(run.place) if group_of(file.name) == group]
    if not files:
        raise BadInput(f"{run.name}: no rollout of the prompt {group!r} is there")
    chosen = [(_label(file.name, group), run, file) for file in files[:MOST_SIDES]]
    sides, unread, alignment = _aligned(site, chosen)
    return site.page(
        "group.html.jinja",
        title=f"Siblings {group}",
        **page_tabs(run, "rollouts"),
        group=group,
        total=len(files),
        sides=sides,
        unread=unread,
        alignment=alignment,
    )


def show_compare(request: Request) -> Response:
    """The sides are `run` and `rollout`, each as often as there are sides; one `run` is that of all rollouts."""
    site = site_of(request)
    runs, rollouts = request.query_params.getlist("run"), request.query_params.getlist("rollout")
    if not rollouts:
        raise BadInput("no rollout was chosen: mark some in a table of rollouts")
    if len(runs) == 1:
        runs *= len(rollouts)
    if len(runs) != len(rollouts) or len(runs) > MOST_SIDES:
        raise BadInput(f"expected a run for each rollout, and at most {MOST_SIDES} of them")
    pairs = list(dict.fromkeys(zip(runs, rollouts, strict=True)))
    *settled, (last_run, last_rollout) = pairs
    run = site.catalogue.find(last_run)
    open_ended = bool(settled) and not last_rollout and run.place.trajectory is None
    if not open_ended:
        settled = pairs
    found = [(site.catalogue.find(name), rollout) for name, rollout in settled]
    chosen = [(show_name(one.name), one, find_rollout(one, rollout)) for one, rollout in found]
    if len({name for name, _ in settled}) == 1:
        chosen = [(file.name, one, file) for _, one, file in chosen]
    sides, unread, alignment = _aligned(site, chosen)
    tasks = sorted({side.fact.task for side in sides})
    names, _ = site.catalogue.list()
    return site.page(
        "compare.html.jinja",
        title="Rollouts beside each other",
        **page_tabs(found[0][0], "rollouts"),
        sides=sides,
        unread=unread,
        alignment=alignment,
        tasks=tasks,
        runs=[one.name for one in names],
        chosen=settled,
        offered=_offers(site, run, settled, tasks) if open_ended else None,
        offering=run.name,
    )


def _offers(site: StudioSite, run: FoundRun, settled: Sequence[tuple[str, str]], tasks: Sequence[str]) -> list[Any]:
    """The rollouts of a run at the same task, each with the address that takes it in."""
    facts, _, _ = newest_facts(site, run)
    same = [fact for fact in facts if fact.task in tasks and (run.name, fact.name) not in settled]
    return [(fact, f"/compare?{_query([*settled, (run.name, fact.name)])}") for fact in same[:_MOST_OFFERED]]


def _query(pairs: Sequence[tuple[str, str]]) -> str:
    return urlencode([part for run, rollout in pairs for part in (("run", run), ("rollout", rollout))])


def _aligned(
    site: StudioSite, chosen: Sequence[tuple[str, FoundRun, RolloutFile]]
) -> tuple[list[AlignedSide], list[RolloutFile], RolloutAlignment]:
    """The sides that can be read, the files that cannot, and the alignment of the former."""
    facts, _ = site.rollouts.read([file for _, _, file in chosen])
    # several files may have one name where they are of several runs; those that were left out are missing in `facts`
    waiting, sides, unread, tapes = list(facts), [], [], []
    for label, run, file in chosen:
        fact = waiting.pop(0) if waiting and waiting[0].name == file.name else None
        if fact is None or fact.problem:
            unread.append(file)
            continue
        sides.append(AlignedSide(label, run, fact))
        tapes.append(site.tapes.open(file.path))
    return sides, unread, align(tapes)


def _label(name: str, group: str) -> str:
    return f"rollout {name.removeprefix(group).lstrip('.-')}"
