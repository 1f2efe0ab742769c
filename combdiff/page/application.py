"""The page over HTTP, for this machine alone.

    GET /         the page                     POST /answer   {"part": "derivative", "text": "x'*x", "wrt": ["x"]}
    GET /static/  its style, script, KaTeX                    →   {"forms": […], "parameters": […], …}

What a browser may load is ours alone (Content-Security-Policy). A request that names another host is refused, so that
no name of a foreign site can be bound to this address; a question has to be sent as JSON, which other sites' pages are
not allowed to do.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from combdiff.errors import ArgumentError, UnsupportedError
from combdiff.page.questions import Limits, QuestionError, question

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC = Path(__file__).parent / "static"
HOSTS = ("127.0.0.1", "localhost")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


class TooLargeError(QuestionError):
    """A request of more bytes than are read."""


class Guard:
    """Refuses requests that name another host, and puts our headers on every response."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 421."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                names = {name for name, _ in ours}
                message["headers"] = [*(h for h in message["headers"] if h[0].lower() not in names), *ours]
            await send(message)

        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if host not in self.hosts:
            from starlette.responses import PlainTextResponse

            await PlainTextResponse("this page answers at 127.0.0.1 alone", 421)(scope, receive, guarded)
            return
        await self.app(scope, receive, guarded)


def application(port: int, limits: Limits | None = None) -> Starlette:
    """The application for a server on a port of 127.0.0.1. Raises UnsupportedError where Starlette is not installed."""
    _require("starlette")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import FileResponse, JSONResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    from combdiff.page.workers import BusyError, Workers

    workers = Workers(limits or Limits())

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def answer(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"error": {"message": "a question is sent as application/json"}}, 415)
        try:
            asked = question(json.loads(await _body(request, workers.limits.request)))
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        except TooLargeError as error:
            return JSONResponse({"error": {"message": error.message}}, 413)
        except QuestionError as error:
            return JSONResponse({"error": {"message": error.message}}, 400)
        except (ValueError, RecursionError):
            return JSONResponse({"error": {"message": "the request is no JSON"}}, 400)
        try:
            return JSONResponse(await workers.ask(asked, request.is_disconnected))
        except BusyError:
            message = "too many questions are waiting; ask again in a moment"
            return JSONResponse({"error": {"message": message}}, 503, {"retry-after": "2"})

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        workers.start()
        try:
            yield
        finally:
            workers.end()

    routes = [
        Route("/", page),
        Route("/answer", answer, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    hosts = tuple(f"{host}:{port}" for host in HOSTS)
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)], lifespan=running)


async def _body(request: Request, most: int) -> bytes:
    """The body, of which no more is read than may be sent."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise TooLargeError(f"a question has at most {most} bytes")
    return body


def serve(port: int) -> None:
    """Serve the page at 127.0.0.1 until Ctrl-C.

    Raises UnsupportedError where the extra `page` is not installed, ArgumentError for a port that cannot be had.
    """
    app = application(port)
    _require("uvicorn")
    uvicorn = import_module("uvicorn")
    with socket.socket() as listening:
        if sys.platform != "win32":  # where it would let two servers have one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise ArgumentError(
                f"the page cannot have port {port}: {error.strerror}", hint="choose another one with --port"
            ) from None
        print(f"combdiff: http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
        config = uvicorn.Config(app, log_level="warning", server_header=False)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def _require(package: str) -> None:
    try:
        import_module(package)
    except ImportError:
        raise UnsupportedError(
            f"the page needs the package {package}", hint="install it with: pip install 'combdiff[page]'"
        ) from None
