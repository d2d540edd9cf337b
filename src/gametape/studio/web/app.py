"""The application: the pages, the data behind them, the desk, the scripts, and how a failure is told."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gametape.core.errors import GametapeError
from gametape.record.errors import printable_path
from gametape.studio.page import printable_text
from gametape.studio.web.behaviour_page import behaviour_routes
from gametape.studio.web.calibration_page import calibration_routes
from gametape.studio.web.catalogue import NotThere
from gametape.studio.web.compare_page import compare_routes
from gametape.studio.web.data import data_routes
from gametape.studio.web.desk_page import ForeignForm, desk_routes
from gametape.studio.web.evaluations_page import evaluations_routes
from gametape.studio.web.guard import LOOPBACK, RequestGuard
from gametape.studio.web.history_pages import history_routes
from gametape.studio.web.pages import page_routes
from gametape.studio.web.result_page import result_routes
from gametape.studio.web.site import STATIC, StudioSite, site_of

_TYPES = {".js": "text/javascript", ".css": "text/css"}


def create_app(site: StudioSite, token: str | None = None) -> ASGIApp:
    """The guarded application. Without a `token` it answers to this machine's own names only."""
    static = Route("/static/{name}", send_static)
    app = Starlette(
        routes=[
            *page_routes(),
            *behaviour_routes(),
            *calibration_routes(),
            *compare_routes(),
            *evaluations_routes(),
            *history_routes(),
            *result_routes(),
            *data_routes(),
            *desk_routes(),
            static,
        ],
        exception_handlers={
            GametapeError: tell_failure,
            OSError: tell_failure,
            RecursionError: tell_failure,
            404: tell_unknown,
        },
    )
    app.state.site = site
    app.state.followers = set()
    return RequestGuard(app, LOOPBACK, token)


def send_static(request: Request) -> Response:
    name = request.path_params["name"]
    known = {path.name: path for path in STATIC.iterdir() if path.suffix in _TYPES}
    if name not in known:
        raise NotThere(f"{name}: there is no such file")
    return FileResponse(known[name], media_type=_TYPES[known[name].suffix])


def tell_failure(request: Request, error: Exception) -> Response:
    """One line, as a page or as data, and never a traceback."""
    reason = str(error)
    if isinstance(error, OSError):
        where = printable_path(error.filename) if error.filename else "a file"
        reason = f"{where}: cannot be read ({error.strerror})"
    elif isinstance(error, RecursionError):
        reason = "too many levels of nesting"
    status = 404 if isinstance(error, NotThere | FileNotFoundError) else 403 if isinstance(error, ForeignForm) else 422
    if request.url.path.startswith(("/data/", "/events")):
        return JSONResponse({"error": printable_text(reason)}, status)
    title = "Not there" if status == 404 else "This cannot be shown"
    return site_of(request).page("failure.html.jinja", status, title=title, reason=reason)


def tell_unknown(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the signature is starlette's
    return tell_failure(request, NotThere(f"{request.url.path}: there is no such page"))
