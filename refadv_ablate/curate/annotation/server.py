"""The annotation pages and their interface: FastAPI, a few static files, nothing from other hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware

from refadv_ablate.curate.annotation.answers import Blind, Verdict
from refadv_ablate.curate.annotation.authoring import Authored, RefusedError, Withdrawn
from refadv_ablate.curate.annotation.desk import Desk
from refadv_ablate.errors import ImageUnreadable, UserError

PAGES = Path(__file__).parent / "page"
_FILES = {
    "/": ("verify.html", "text/html; charset=utf-8"),
    "/author": ("author.html", "text/html; charset=utf-8"),
    "/progress": ("progress.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/common.js": ("common.js", "text/javascript; charset=utf-8"),
    "/verify.js": ("verify.js", "text/javascript; charset=utf-8"),
    "/author.js": ("author.js", "text/javascript; charset=utf-8"),
    "/progress.js": ("progress.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    # no inline script, no other host: what annotators or data wrote can't run or call anywhere
    "Content-Security-Policy": "default-src 'none'; img-src 'self' data:; style-src 'self'; "
    "script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_BIGGEST = 20_000
"""Bytes of a posted answer."""


def application(desk: Desk, hosts: list[str]) -> FastAPI:
    """hosts: names under which the page may be asked for; "*" allows any."""
    app = FastAPI(title="refadv-ablate curation", docs_url=None, redoc_url=None, openapi_url=None)
    # A page on another site may resolve its own name to 127.0.0.1; the Host header tells.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    app.middleware("http")(_guard)
    app.exception_handler(RefusedError)(_refused)
    app.exception_handler(ImageUnreadable)(_refused)
    app.exception_handler(RequestValidationError)(_malformed)
    for route, (name, kind) in _FILES.items():
        app.get(route)(_file(PAGES / name, kind))
    _add_interface(app, desk)
    return app


def _add_interface(app: FastAPI, desk: Desk) -> None:
    @app.get("/api/setup")
    def setup() -> dict[str, Any]:
        return {"annotators": desk.annotators, "items": len(desk.items), "scenes": len(desk.scenes)}

    @app.get("/api/next")
    def upcoming(
        annotator: str, item: str | None = None, window: Annotated[str, Query(max_length=64)] = ""
    ) -> dict[str, Any]:
        return desk.next(annotator, item, window)

    @app.post("/api/answer")
    def answer(said: Annotated[Blind | Verdict, Body(discriminator="kind")]) -> dict[str, Any]:
        return desk.answer(said)

    @app.get("/api/scene")
    def scene(annotator: str, index: Annotated[int, Query(ge=0, le=10_000_000)] = 0) -> dict[str, Any]:
        return desk.authoring.scene(annotator, index)

    @app.post("/api/author")
    def author(said: Authored) -> dict[str, Any]:
        return desk.authoring.author(said)

    @app.post("/api/withdraw")
    def withdraw(said: Withdrawn) -> dict[str, Any]:
        return desk.authoring.withdraw(said)

    @app.get("/api/progress")
    def progress() -> dict[str, Any]:
        return desk.progress()

    @app.get("/image/{key}")
    def image(key: str) -> Response:
        return Response(desk.image(key), media_type="image/jpeg", headers={"Cache-Control": "max-age=3600"})


def _file(path: Path, kind: str) -> Callable[[], FileResponse]:
    def send() -> FileResponse:
        return FileResponse(path, media_type=kind)

    return send


async def _guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuses posts from other sites and oversized ones; keeps the pages to themselves."""
    if request.method == "POST":
        origin = request.headers.get("origin")
        if origin and urlsplit(origin).netloc != request.headers.get("host"):
            return JSONResponse({"detail": "posts from other sites are refused"}, 403)
        if "transfer-encoding" in request.headers:  # its length isn't known before all of it is here
            return JSONResponse({"detail": "send the answer with its length"}, 411)
        if int(request.headers.get("content-length") or _BIGGEST + 1) > _BIGGEST:
            return JSONResponse({"detail": "too long"}, 413)
    response = await call(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _malformed(request: Request, error: Exception) -> JSONResponse:
    """Without the value that was sent, which may be no JSON (infinity) or anything at all."""
    return JSONResponse({"detail": "the server can't read this answer; reload the page"}, 422)


def _refused(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 409)


def serve(app: FastAPI, host: str, port: int) -> None:
    """Until it is stopped. Raises UserError where the port is taken."""
    import socket

    import uvicorn

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"verify.host={host} verify.port={port} can't be used ({error.strerror}): give another port"
            ) from error
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)
