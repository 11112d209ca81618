"""What a user's command asks of a cluster: a request in the log, and the leader's answer."""

import os
import socket
import time
import uuid

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.hosts.cluster.bodies import ASSIGNMENTS
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.messages import ANSWER, REQUEST, Answer, Request
from spillway.hosts.cluster.opening import Place
from spillway.hosts.cluster.records import Record

_LOOK_S = 0.2


def ask(place: Place, request: Request, wait_s: float = 30.0) -> str:
    """What was done; raises what the leader refuses, and where nobody leads."""
    asked, reports = uuid.uuid4().hex[:12], place.reports()
    answers = Latest(place.assignments(), ASSIGNMENTS)
    writer = f"{socket.gethostname()}-{os.getpid()}"

    def record(epoch: int, *, gone: bool = False) -> Record:
        return Record(
            cluster=place.name,
            key=REQUEST + asked,
            epoch=epoch,
            writer=writer,
            body=None if gone else to_json(Request, request),
        )

    reports.append(record(1))
    try:
        deadline_s = time.monotonic() + wait_s
        while time.monotonic() < deadline_s:
            answers.read_on()
            if (placed := answers.by_key.get(ANSWER + asked)) is not None:
                answer = from_json(Answer, placed.record.body or {})
                if answer.error:
                    raise SpillwayError(answer.error)
                return answer.done
            time.sleep(_LOOK_S)
    finally:
        reports.append(record(2, gone=True))
        reports.close()
        answers.log.close()
    raise SpillwayError(
        f"nobody leads cluster '{place.name}': no answer within {wait_s:g} s; start a coordinator"
        f" with `spillway cluster run {place.file}`"
    )
