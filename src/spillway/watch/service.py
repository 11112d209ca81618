"""The HTTP API: one snapshot a second for everybody, whoever asks and however many."""

import asyncio
import json
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from spillway.errors import SpillwayError, shown
from spillway.redaction import redacted
from spillway.watch.guard import HEADERS, Guard, RefusedError, json_body
from spillway.watch.history import LONGEST_S, MOST_POINTS, Asked, decision_of, history_of
from spillway.watch.metrics import CONTENT_TYPE
from spillway.watch.openapi import document
from spillway.watch.views import Snapshot
from spillway.watch.watched import Watched

PAGE = Path(__file__).parent / "page"
MOST_CHANGES = 32
LOOK_S = 1.0
_LONGEST_FAILURE = 500  # characters

_snapshots = TypeAdapter(Snapshot)
Handler = Callable[[Request], Awaitable[Response]]


class Service:
    """`app` is the ASGI application; `pump` makes the snapshots that it serves."""

    def __init__(self, watched: Watched, guard: Guard) -> None:
        self._watched, self._guard = watched, guard
        self._snapshot: Snapshot | None = None
        self._encoded = b""
        self._next = asyncio.Event()
        self._looking, self._previewing = asyncio.Lock(), asyncio.Lock()
        self._curves: dict[Asked, asyncio.Future[bytes]] = {}  # of the last snapshot
        self._closing = False
        self._files = {path.name: _File(path) for path in sorted(PAGE.iterdir()) if path.is_file()}
        self.app = Starlette(
            routes=[
                Route("/healthz", self._public(self._health)),
                Route("/readyz", self._public(self._ready)),
                Route("/metrics", self._read(self._metrics)),
                Route("/api/state", self._read(self._state)),
                Route("/api/events", self._read(self._events)),
                Route("/api/history", self._read(self._history)),
                Route("/api/decisions", self._read(self._decisions)),
                Route("/api/who", self._read(self._who)),
                Route("/api/instances", self._read(self._instances), methods=["GET"]),
                Route("/api/instances", self._public(self._set_instances), methods=["POST"]),
                Route("/api/preview", self._public(self._preview), methods=["POST"]),
                Route("/api/set", self._public(self._set), methods=["POST"]),
                Route("/openapi.json", self._public(self._openapi)),
                Route("/", self._public(self._page)),
                Route("/{name}", self._public(self._page)),
            ],
            exception_handlers={HTTPException: _told, Exception: _failed},
        )

    async def pump(self) -> None:
        """A look that fails is tried again: a page must not end what it watches."""
        while not self._closing:
            with suppress(Exception):
                await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        async with self._looking:
            snapshot = await run_in_threadpool(self._watched.look)
            encoded = await run_in_threadpool(_snapshots.dump_json, snapshot)
            self._snapshot, self._encoded = snapshot, encoded  # whoever sees one has the other
        self._curves = {}
        news, self._next = self._next, asyncio.Event()
        news.set()

    def close(self) -> None:
        """Whoever listens to events is told that there are no more."""
        self._closing = True
        self._next.set()

    # -- who may ask

    def _public(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            try:
                self._guard.require_host(request)
                response = await handler(request)
            except RefusedError as refused:
                response = refused.response()
            response.headers.update(HEADERS)
            return response

        return guarded

    def _read(self, handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            self._guard.require_reader(request)
            return await handler(request)

        return self._public(checked)

    # -- how it stands

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"alive": True})

    async def _ready(self, request: Request) -> Response:
        ready = self._snapshot is not None and self._snapshot.ready
        return JSONResponse({"ready": ready}, 200 if ready else 503)

    async def _metrics(self, request: Request) -> Response:
        text = await run_in_threadpool(self._watched.metrics_text)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def _state(self, request: Request) -> Response:
        if self._snapshot is None:
            await self.look()
        return Response(self._encoded, media_type="application/json")

    async def _events(self, request: Request) -> Response:
        async def told() -> AsyncIterator[bytes]:
            while not self._closing:
                following = self._next
                if self._encoded:
                    yield b"event: state\ndata: " + self._encoded + b"\n\n"
                await following.wait()
            yield b"event: end\ndata: {}\n\n"

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(told(), media_type="text/event-stream", headers=headers)

    async def _history(self, request: Request) -> Response:
        seconds = _number(request, "seconds", 600.0, 10.0, LONGEST_S)
        points = _number(request, "points", 600.0, 2.0, MOST_POINTS)
        last_s = _number(request, "last", LONGEST_S, 1.0, LONGEST_S)
        asked = Asked(seconds=seconds, points=int(points), last_s=last_s)
        if asked not in self._curves:  # many pages ask the same
            self._curves[asked] = asyncio.ensure_future(self._drawn(asked))
        return Response(await asyncio.shield(self._curves[asked]), media_type="application/json")

    async def _drawn(self, asked: Asked) -> bytes:
        until_s = self._snapshot.time_s if self._snapshot else 0.0

        def drawn() -> bytes:
            found = history_of(self._watched.story, until_s, asked)
            return json.dumps(found, separators=(",", ":")).encode()

        return await run_in_threadpool(drawn)

    async def _decisions(self, request: Request) -> Response:
        limit = int(_number(request, "limit", 50.0, 1.0, 2000.0))
        query, class_name = request.query_params.get("query"), request.query_params.get("class")
        with self._watched.story.lock:
            found = [
                decided
                for decided in reversed(self._watched.story.decisions)
                if query in (None, decided.measurement.query)
                and class_name in (None, decided.measurement.class_name)
            ]
        return JSONResponse([decision_of(decided) for decided in found[:limit]])

    async def _who(self, request: Request) -> Response:
        """Whether the token that came with it may change something."""
        try:
            token = self._guard.require_changer(request)
        except RefusedError as refused:
            if "authorization" in request.headers:
                raise
            return JSONResponse({"name": None, "may_change": False, "why": refused.said})
        return JSONResponse({"name": token.name, "may_change": True, "why": ""})

    # -- what can be changed

    async def _set(self, request: Request) -> Response:
        token = self._guard.require_changer(request)
        changes = await json_body(request)
        if len(changes) > MOST_CHANGES:
            raise RefusedError(422, f"{len(changes)} changes at once: {MOST_CHANGES} are allowed")
        for key, value in changes.items():
            if isinstance(value, list):
                raise RefusedError(422, f"{key} cannot become a list: give one value")
        await self._changing(lambda: self._watched.change(changes, token.name))
        return JSONResponse({"set": changes, "by": token.name})

    async def _preview(self, request: Request) -> Response:
        """One at a time: it computes for seconds."""
        self._guard.require_changer(request)
        targets = await json_body(request)
        if not all(isinstance(target, str) for target in targets.values()):
            raise RefusedError(422, 'give targets by class, such as {"gold": "p99 1s"}')
        try:
            async with self._previewing:
                found = await run_in_threadpool(self._watched.preview, targets)
        except SpillwayError as error:
            raise RefusedError(422, str(error)) from error
        return JSONResponse(asdict(found))

    async def _instances(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._watched.instances))

    async def _set_instances(self, request: Request) -> Response:
        token = self._guard.require_changer(request)
        body = await json_body(request)
        query, add, remove = body.get("query"), body.get("add", []), body.get("remove", [])
        if set(body) - {"query", "add", "remove"} or not isinstance(query, str):
            raise RefusedError(422, 'give {"query": NAME, "add": [{...}], "remove": [ID]}')
        if not _are(add, dict) or not _are(remove, int):
            raise RefusedError(422, "add is a list of objects, remove a list of query ids")
        added: list[int] = []

        def change() -> None:
            added.extend(self._watched.change_instances(query, add, remove, token.name))

        await self._changing(change)
        return JSONResponse({"added": added, "removed": remove, "by": token.name})

    async def _changing(self, change: Callable[[], None]) -> None:
        try:
            await run_in_threadpool(change)
        except SpillwayError as error:
            raise RefusedError(422, str(error)) from error
        await self.look()

    # -- the page

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(document())

    async def _page(self, request: Request) -> Response:
        file = self._files.get(request.path_params.get("name", "index.html"))
        if file is None:
            raise RefusedError(
                404, "there is nothing of that name: /openapi.json has what there is"
            )
        headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Content-Type": file.kind}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)


class _File:
    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        self.kind = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
        self.tag = f'"{blake2b(self.content, digest_size=12).hexdigest()}"'


def _number(request: Request, name: str, default: float, least: float, most: float) -> float:
    text = request.query_params.get(name)
    if text is None:
        return default
    with suppress(ValueError):
        if least <= (value := float(text)) <= most:
            return value
    raise RefusedError(422, f"{name} is '{text}': it must be from {least:g} to {most:g}")


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse(
        {"error": error.detail}, error.status_code, {**HEADERS, **(error.headers or {})}
    )


async def _failed(request: Request, error: Exception) -> Response:
    said = shown(redacted(f"{type(error).__name__}: {error}"), _LONGEST_FAILURE)
    return JSONResponse({"error": said}, 500, HEADERS)
