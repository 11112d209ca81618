"""No traceback on the terminal when Spark closes the socket of one of its Python processes.

Spark closes it when a query stops and when a worker was idle for a minute. The process then tries
to say goodbye; over a Unix socket that fails at once, and PySpark prints it. Nothing is wrong.
"""

import sys
import traceback
from types import TracebackType

_PYSPARKS_OWN = ("pyspark.daemon", "pyspark.sql.streaming.python_streaming_source_runner")


def pass_over_closed_sockets() -> None:
    """In PySpark's own processes; elsewhere it does nothing."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or spec.name not in _PYSPARKS_OWN:
        return
    print_exc, excepthook = traceback.print_exc, sys.excepthook

    def quiet_print_exc(*args: object, **kwargs: object) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            print_exc(*args, **kwargs)  # type: ignore[arg-type]

    def quiet_excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, BrokenPipeError):
            excepthook(kind, error, trace)

    traceback.print_exc = quiet_print_exc
    sys.excepthook = quiet_excepthook
