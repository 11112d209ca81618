"""A watch in a thread of its own, with an event loop of its own: it never waits for the run, and
the run never for it."""

import asyncio
import socket
import threading
from contextlib import suppress

import uvicorn

from spillway.watch.guard import Guard
from spillway.watch.listening import Address, Tls
from spillway.watch.service import Service
from spillway.watch.tokens import Token
from spillway.watch.watched import Watched

_START_S, _STOP_S = 10.0, 3.0
_MOST_CONNECTIONS = 500


class WatchServer:
    def __init__(
        self,
        watched: Watched,
        listening: tuple[socket.socket, Address],
        tokens: tuple[Token, ...],
        tls: Tls | None = None,
    ) -> None:
        self._socket, self.address = listening
        self._service = Service(
            watched, Guard(tokens=tokens, open_to_read=self.address.is_loopback)
        )
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._service.app,
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                ws="none",
                loop="asyncio",
                http="h11",
                server_header=False,
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=1,
                ssl_certfile=None if tls is None else str(tls.certificate),
                ssl_keyfile=None if tls is None else str(tls.key),
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="spillway-watch", daemon=True)
        self._begun = threading.Event()

    def start(self) -> None:
        self._thread.start()
        self._begun.wait(_START_S)

    def stop(self) -> None:
        """Within seconds, whoever is connected."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(self._service.close)
            self._server.should_exit = True
            self._thread.join(_STOP_S)
        self._socket.close()

    def _run(self) -> None:
        with suppress(Exception):  # a page that has failed must not end the run
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        pump = asyncio.create_task(self._service.pump())
        self._begun.set()
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            pump.cancel()
