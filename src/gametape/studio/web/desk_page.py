"""The desk on a page: what waits for a person, with buttons that decide it, and what is under way.

A decision needs the secret that only this server's own forms have. A note is accepted as it was shown: where an agent
has changed it since, nothing is decided and the page says so. The desk is opened for each request, and a home without
one is not given one.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import compare_digest
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gametape.core.errors import BadInput, GametapeError
from gametape.desk.desk import open_desk
from gametape.desk.heartbeats.registry import heartbeat_names, load_state, tick_log
from gametape.desk.jobs import Desk
from gametape.desk.outbox import OutboxDraft
from gametape.desk.vault.repository import Commit
from gametape.desk.vault.review import NoteChange, accept, revert, review
from gametape.desk.vault.vault import Vault
from gametape.studio.web.catalogue import HOME_PREFIX
from gametape.studio.web.run_rows import run_rows
from gametape.studio.web.site import StudioSite, site_of

_MOST_DIFF_LINES = 2_000
_LONGEST_LINE = 4_000
_MOST_JOBS = 200
_MOST_TALKS = 5
"""Conversations that are shown on the desk itself, those that changed last."""
_WAITING = ("draft", "approved", "sending")


class ForeignForm(BadInput):
    """A form that this server has not made."""


@dataclass(frozen=True)
class ShownChange:
    """A changed note as it is shown; `seen` stands for exactly this change, `whole` says that all of it is shown."""

    note: str
    diff: Sequence[str]
    commits: Sequence[Commit]
    seen: str
    whole: bool


def desk_routes() -> list[Route]:
    return [
        Route("/desk", show_desk),
        Route("/desk/draft", decide_draft, methods=["POST"]),
        Route("/desk/note", decide_note, methods=["POST"]),
    ]


def show_desk(request: Request) -> Response:
    site = site_of(request)
    drafts: list[OutboxDraft] = []
    beats: list[dict[str, Any]] = []
    with _desk(site) as desk:
        if desk:
            drafts = [draft for draft in desk.outbox.list() if draft.state in _WAITING]
            beats = [_heartbeat(desk, name) for name in heartbeat_names(desk)]
    changes, note = _changes(site)
    found, _ = site.catalogue.list()
    spoken = {run.name for run in found if run.place.trajectory}
    jobs = run_rows([run for run in found if run.name.startswith(HOME_PREFIX)])[:_MOST_JOBS]
    return site.page(
        "desk.html.jinja",
        title="Desk",
        page="desk",
        message=request.query_params.get("message", ""),
        secret=site.form_secret,
        drafts=drafts,
        changes=changes,
        vault_note=note,
        jobs=jobs,
        talks=[row for row in jobs if row.kind == "thread" and row.name in spoken][:_MOST_TALKS],
        heartbeats=beats,
        home=str(site.catalogue.home),
    )


async def decide_draft(request: Request) -> Response:
    site = site_of(request)
    form = await _own_form(request)
    with _desk(site) as desk:
        if desk is None:
            raise BadInput("there is no desk in this home")
        try:
            decision = form.get("decision")
            if decision in ("approve", "again"):
                draft = await desk.outbox.approve(form.get("draft", ""), again=decision == "again")
                return _back(f"{draft.id}: {desk.outbox.delivery_of(draft)}")
            draft = await desk.outbox.reject(form.get("draft", ""))
            return _back(f"{draft.id}: rejected")
        except GametapeError as error:
            return _back(str(error))


async def decide_note(request: Request) -> Response:
    form = await _own_form(request)
    return await run_in_threadpool(_decide_note, site_of(request), form)


def _decide_note(site: StudioSite, form: dict[str, str]) -> Response:
    note = form.get("note", "")
    try:
        vault = Vault.open(site.catalogue.home / "vault")
        if form.get("decision") == "accept":
            accept(vault, [note], {note: form.get("seen", "")})
            return _back(f"{note}: accepted")
        revert(vault, note, form.get("seen", ""))
        return _back(f"{note}: taken back")
    except GametapeError as error:
        return _back(str(error))


async def _own_form(request: Request) -> dict[str, str]:
    """The fields of a form of ours. Raises `ForeignForm` for any other."""
    async with request.form(max_files=0, max_fields=10) as form:
        fields = {key: value for key, value in form.items() if isinstance(value, str)}
    if not compare_digest(fields.get("secret", "").encode(), site_of(request).form_secret.encode()):
        raise ForeignForm("this form is not of this server, or of an earlier start of it; load the page again")
    return fields


@contextmanager
def _desk(site: StudioSite) -> Iterator[Desk | None]:
    """The desk of the home; None where nothing has made one yet."""
    home = site.catalogue.home
    if site.database or os.environ.get("GAMETAPE_DATABASE") or (home / "desk" / "desk.sqlite").is_file():
        with open_desk(home, site.database) as desk:
            yield desk
    else:
        yield None


def _changes(site: StudioSite) -> tuple[list[ShownChange], str]:
    root = site.catalogue.home / "vault"
    if not root.is_dir():
        return [], "There is no vault. gametape vault init makes one."
    try:
        return [_shown(change) for change in review(Vault.open(root))], "None."
    except GametapeError as error:
        return [], str(error)


def _shown(change: NoteChange) -> ShownChange:
    diff = [line[:_LONGEST_LINE] for line in change.diff[:_MOST_DIFF_LINES]]
    return ShownChange(change.note, diff, change.commits, change.version, diff == [*change.diff])


def _heartbeat(desk: Desk, name: str) -> dict[str, Any]:
    last = next(iter(tick_log(desk, name, 1)), None)
    state = "paused" if load_state(desk, name).paused else "on"
    return {"name": name, "state": state, "at": last.at if last else None, "outcome": last.outcome if last else ""}


def _back(message: str) -> Response:
    return RedirectResponse(f"/desk?{urlencode({'message': message})}", 303)
