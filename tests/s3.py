"""An S3 interface on loopback, over HTTP, which can be slow, refuse, and go away."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "state"


class Storage:
    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._port = 0
        self.refusing, self.slow_s = "", 0.0  # a status line, and before every answer
        self.start()
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "something",
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        self._server = make_server("127.0.0.1", self._port, self._answer, threaded=True)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def away(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def _answer(self, environ: Any, start: Callable[..., Any]) -> Any:
        time.sleep(self.slow_s)
        if self.refusing:
            start(self.refusing, [("Content-Type", "text/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"]
        return self._app(environ, start)

    def make_bucket(self) -> None:
        from urllib.request import Request, urlopen

        url = f"{self.environment['AWS_ENDPOINT_URL']}/{BUCKET}"
        key = "Credential=somebody/20260101/us-east-1/s3/aws4_request"
        signed = f"AWS4-HMAC-SHA256 {key}, SignedHeaders=host, Signature=0"
        with urlopen(Request(url, method="PUT", headers={"Authorization": signed}), timeout=30):
            pass
