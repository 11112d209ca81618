"""The HTTP API: what it serves, and what it refuses."""

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from virtual import LOOKS, SECRET, TOKENS, VirtualWatch

from spillway.journal.entries import Event
from spillway.watch import service
from spillway.watch.guard import LARGEST_BODY, Guard
from spillway.watch.listening import Address, bound
from spillway.watch.openapi import document
from spillway.watch.server import WatchServer
from spillway.watch.views import Snapshot

ADA = {"Authorization": f"Bearer {SECRET}"}
JSON = {"Content-Type": "application/json"}


def said(answer: httpx.Response) -> str:
    return str(answer.json()["error"])


def test_health_and_readiness(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"alive": True}
    client.get("/api/state")  # whoever asks first makes the first look
    assert client.get("/readyz").status_code == 200


def test_the_state_is_a_whole_snapshot(client: httpx.Client, watched: VirtualWatch) -> None:
    state = TypeAdapter(Snapshot).validate_python(client.get("/api/state").json())
    assert [view.name for view in state.classes] == ["gold", "silver", "bronze"]
    assert {view.health for view in state.classes} == {"good"}
    assert {query.audit.verdict for query in state.queries} == {"exact"}


def test_an_overload_is_seen_with_its_cause_and_its_reason(
    client: httpx.Client, watched: VirtualWatch
) -> None:
    watched.advance(80.0)  # into the burst of clicks
    client.post("/api/set", headers=ADA, json={"gold.lend": 0.9})  # a change makes a new look
    state = client.get("/api/state").json()
    bronze = next(view for view in state["classes"] if view["name"] == "bronze")
    assert bronze["health"] in ("shedding", "late")
    assert "sheds" in bronze["why"]
    assert bronze["quota"] > bronze["original"]  # it borrows
    assert state["cause"] == "trends"


def test_events_are_the_state_again_and_again(client: httpx.Client) -> None:
    found: list[dict[str, Any]] = []
    with client.stream("GET", "/api/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == 2:
                break
    assert found[0]["flow"] == "virtual"


def test_history_is_down_sampled_and_loses_nothing(
    client: httpx.Client, watched: VirtualWatch
) -> None:
    watched.advance(150.0)
    client.post("/api/set", headers=ADA, json={"gold.lend": 0.9})
    fine = client.get("/api/history", params={"seconds": 170, "points": 170}).json()
    coarse = client.get("/api/history", params={"seconds": 170, "points": 10}).json()

    def offered(history: dict[str, Any]) -> float:
        columns = history["classes"]["bronze"]
        known = [rate for rate in columns["offered_per_s"] if rate is not None]
        return float(sum(known) * columns["step_s"])

    assert len(coarse["classes"]["bronze"]["times_s"]) <= 11
    assert offered(coarse) == pytest.approx(offered(fine), rel=0.12)
    worst = [max(v for v in h["classes"]["bronze"]["worst_s"] if v) for h in (fine, coarse)]
    assert worst[0] == worst[1]  # the peak stays, however few points there are


def test_the_end_of_the_history_fits_onto_the_whole(
    client: httpx.Client, watched: VirtualWatch
) -> None:
    watched.advance(60.0)
    client.post("/api/set", headers=ADA, json={"gold.lend": 0.9})
    asked: dict[str, float] = {"seconds": 80, "points": 40}
    whole = client.get("/api/history", params=asked).json()["queries"]["trends"]
    end = client.get("/api/history", params={**asked, "last": 10}).json()["queries"]["trends"]
    assert 0 < len(end["times_s"]) < len(whole["times_s"])
    for name, values in end.items():
        if name != "step_s":
            assert whole[name][-len(values) :] == values


def test_decisions_are_the_newest_first_and_of_whom_was_asked(client: httpx.Client) -> None:
    found = client.get("/api/decisions", params={"query": "fraud", "limit": 5}).json()
    assert len(found) == 5
    assert {decision["class"] for decision in found} == {"gold"}
    assert found[0]["time_s"] > found[-1]["time_s"]
    assert all(decision["reason"] for decision in found)


def test_a_change_is_in_force_and_known_by_its_author(
    client: httpx.Client, watched: VirtualWatch
) -> None:
    answer = client.post(
        "/api/set", headers=ADA, json={"gold.delay": "p99 1s", "bronze.shedding": "paused"}
    )
    assert answer.status_code == 200
    gold = client.get("/api/state").json()["classes"][0]
    assert (gold["target"], gold["target_s"]) == ("p99 1s", 1.0)
    assert watched.host.control.classes["bronze"].min_keep == 1.0
    said_last = client.get("/api/state").json()["said"][0]
    assert said_last["text"].endswith("by ada")
    [override] = [o for o in client.get("/api/state").json()["overrides"] if "delay" in o["key"]]
    assert (override["value"], override["file_value"], override["by"]) == (
        "p99 1s",
        "p99 3s",
        "ada",
    )
    client.post("/api/set", headers=ADA, json={"gold.delay": None})
    assert client.get("/api/state").json()["classes"][0]["target"] == "p99 3s"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {SECRET}"}, 401),
        ({"Authorization": f"Bearer {LOOKS}"}, 403),
    ],
)
def test_without_the_right_token_nothing_changes(
    client: httpx.Client, watched: VirtualWatch, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/api/set", headers=headers, json={"gold.delay": "1s"})
    assert answer.status_code == status
    assert watched.settings.overrides == {}
    assert SECRET not in answer.text
    assert LOOKS not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b'{"golf.delay": "1s"}', 422, "did you mean 'gold'"),
        (b'{"gold.colour": "red"}', 422, "unknown setting 'colour'"),
        (b'{"gold.delay": "soon"}', 422, "cannot become 'soon'"),
        (b'{"gold.priority": 0}', 422, "cannot become '0'"),
        (b'{"gold.min_keep": 2}', 422, "min_keep"),
        (b'{"gold.shedding": "off"}', 422, "shedding"),
        (b'{"gold.manager": "magic"}', 422, "magic"),
        (b'{"control.policy": "fair"}', 422, "fair"),
        (b'{"gold.delay": ["1s"]}', 422, "list"),
        (b'{"silver.delay": "9s", "gold.delay": "soon"}', 422, "soon"),
        (b'{"gold.min_keep": NaN}', 400, "not JSON"),
        (b'{"gold.delay": ', 400, "not JSON"),
        (b"[" * 5000, 400, "not JSON"),
        (b"[1]", 400, "object"),
        (b"{}", 400, "object"),
        (b'{"' + b"x" * LARGEST_BODY + b'": "1s"}', 413, "larger"),
    ],
)
def test_a_wrong_change_gets_one_line_and_changes_nothing(
    client: httpx.Client, watched: VirtualWatch, body: bytes, status: int, word: str
) -> None:
    answer = client.post("/api/set", headers={**ADA, **JSON}, content=body)
    assert (answer.status_code, word in said(answer)) == (status, True), answer.text[:300]
    assert "\n" not in said(answer)
    assert watched.settings.overrides == {}
    assert watched.settings.classes["silver"].delay == "3s"


def test_a_form_cannot_change_anything(client: httpx.Client) -> None:
    answer = client.post("/api/set", headers=ADA, data={"gold.delay": "1s"})
    assert answer.status_code == 415


def test_another_name_for_the_loopback_address_is_refused(client: httpx.Client) -> None:
    answer = client.get("/api/state", headers={"Host": "evil.example:80"})
    assert answer.status_code == 421


def test_elsewhere_than_on_loopback_looking_needs_a_token(watched: VirtualWatch) -> None:
    server = WatchServer(watched, bound(Address(host="0.0.0.0", port=0)), TOKENS)
    server.start()
    try:
        base = f"http://127.0.0.1:{server.address.port}"
        for path in ("/api/state", "/metrics", "/api/events", "/api/history", "/api/decisions"):
            assert httpx.get(base + path, timeout=60.0).status_code == 401
        assert httpx.get(base + "/healthz", timeout=60.0).status_code == 200
        assert "<html" in httpx.get(base + "/", timeout=60.0).text  # the page asks for the token
        looks = {"Authorization": f"Bearer {LOOKS}"}
        assert httpx.get(base + "/api/state", headers=looks, timeout=60.0).status_code == 200
        assert httpx.get(base + "/metrics", headers=looks, timeout=60.0).status_code == 200
    finally:
        server.stop()


def test_a_new_target_is_previewed_and_nothing_changes(
    client: httpx.Client, watched: VirtualWatch
) -> None:
    watched.advance(70.0)  # into the burst
    found = httpx.post(
        f"{client.base_url}/api/preview", headers=ADA, json={"bronze": "2s"}, timeout=60.0
    ).json()
    assert found["shed_ratio_now"] == pytest.approx(found["recorded_shed_ratio"], abs=0.1)
    assert found["shed_ratio"] > found["shed_ratio_now"]  # half the time for the same load
    assert watched.settings.overrides == {}
    assert client.post("/api/preview", json={"bronze": "2s"}).status_code == 401
    for wrong in ({"golf": "2s"}, {"gold": "soon"}, {"gold": 2}):
        assert client.post("/api/preview", headers=ADA, json=wrong).status_code == 422


def test_who_says_what_a_token_may(client: httpx.Client) -> None:
    assert client.get("/api/who").json()["may_change"] is False
    assert client.get("/api/who", headers=ADA).json() == {
        "name": "ada",
        "may_change": True,
        "why": "",
    }


def test_nothing_comes_from_elsewhere(client: httpx.Client) -> None:
    answer = client.get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for name in ("app.js", "style.css", "index.html"):
        assert "//cdn" not in client.get(f"/{name}").text
    assert client.get("/..%2fservice.py").status_code == 404
    tag = answer.headers["etag"]
    assert client.get("/", headers={"If-None-Match": tag}).status_code == 304


def test_a_look_that_fails_is_tried_again(watched: VirtualWatch) -> None:
    looks = iter([RuntimeError("the run is busy"), None, None, None, None])
    real = watched.look

    def look() -> Snapshot:
        if (error := next(looks, None)) is not None:
            raise error
        return real()

    watched.look = look  # type: ignore[method-assign]
    server = WatchServer(watched, bound(Address(host="127.0.0.1", port=0)), TOKENS)
    server.start()
    try:
        assert httpx.get(f"{server.url}/api/state", timeout=60.0).json()["flow"] == "virtual"
    finally:
        server.stop()


def test_it_stops_within_seconds_though_pages_are_open(server: WatchServer) -> None:
    opened = threading.Barrier(6, timeout=60)

    def listen() -> None:
        with httpx.stream("GET", f"{server.url}/api/events", timeout=60) as answer:
            lines = answer.iter_lines()
            next(lines)
            opened.wait()
            for _ in lines:
                pass

    pages = [threading.Thread(target=listen) for _ in range(5)]
    for page in pages:
        page.start()
    opened.wait()
    server.stop()
    for page in pages:
        page.join(60.0)
    assert not any(page.is_alive() for page in pages)


def test_every_path_is_described_and_every_answer_keeps_to_it(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    assert described == document()
    for path, methods in described["paths"].items():
        if "get" in methods and path != "/api/events":
            answer = client.get(path)
            assert str(answer.status_code) in methods["get"]["responses"], path
            if answer.headers["content-type"] == "application/json":
                schema = methods["get"]["responses"][str(answer.status_code)]["content"]
                problem = mismatch(answer.json(), schema["application/json"]["schema"], described)
                assert problem is None, f"{path}: {problem}"


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def mismatch(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> str | None:
    """As much of JSON Schema as the document uses."""
    if "$ref" in schema:
        return mismatch(value, root["components"]["schemas"][schema["$ref"].split("/")[-1]], root)
    if "anyOf" in schema:
        found = [mismatch(value, one, root) for one in schema["anyOf"]]
        return None if None in found else str(found)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, _TYPES[kind]) for kind in kinds):
        return f"{value!r} is no {kinds}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        gone = set(schema.get("required", ())) - set(value)
        if gone:
            return f"{gone} is missing"
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if isinstance(inner, dict) and (problem := mismatch(item, inner, root)):
                return f"{name}: {problem}"
    if isinstance(value, list) and "items" in schema:
        return next((p for item in value if (p := mismatch(item, schema["items"], root))), None)
    return None


_WORDS = st.sampled_from(["gold", "silver", "delay", "priority", "control.policy", "", "a.b.c"])
_KEYS = st.one_of(st.text(max_size=12), st.tuples(_WORDS, _WORDS).map(".".join), _WORDS)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_whatever_is_sent_gets_an_answer_that_is_described(
    client: httpx.Client, watched: VirtualWatch, changes: dict[str, Any]
) -> None:
    before = (dict(watched.settings.classes), watched.settings.policy)
    answer = client.post("/api/set", headers={**ADA, **JSON}, content=json.dumps(changes))
    described = document()["paths"]["/api/set"]["post"]["responses"]
    assert str(answer.status_code) in described
    if answer.status_code != 200:
        assert before == (dict(watched.settings.classes), watched.settings.policy)
        assert "\n" not in said(answer)
    assert client.get("/api/state").status_code == 200


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(["/api/history", "/api/decisions"]),
    given_=st.dictionaries(
        st.sampled_from(["seconds", "points", "last", "limit", "query", "class"]),
        st.one_of(st.floats().map(str), st.integers().map(str), st.text(max_size=8)),
    ),
)
def test_whatever_is_asked_gets_an_answer_that_is_described(
    client: httpx.Client, path: str, given_: dict[str, str]
) -> None:
    answer = client.get(path, params=given_)
    assert str(answer.status_code) in document()["paths"][path]["get"]["responses"]


def test_an_event_of_the_journal_is_a_sentence(watched: VirtualWatch) -> None:
    watched.story.tell(
        [Event(time_s=1.0, kind="restarted", fields={"query": "fraud", "error": "killed"})]
    )
    assert watched.look().said[0].text == "fraud was started again: killed"


def test_who_asks_during_the_first_look_is_told_when_it_is_done(
    watched: VirtualWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, may_go_on = threading.Event(), threading.Event()
    snapshots = TypeAdapter(Snapshot)

    class Slow:
        def dump_json(self, snapshot: Snapshot) -> bytes:
            encoding.set()
            may_go_on.wait(60.0)
            return snapshots.dump_json(snapshot)

    monkeypatch.setattr(service, "_snapshots", Slow())

    async def asked() -> httpx.Response:
        made = service.Service(watched, Guard(tokens=TOKENS, open_to_read=True))
        first = asyncio.create_task(made.look())
        await asyncio.to_thread(encoding.wait, 60.0)
        door = httpx.ASGITransport(app=made.app)
        async with httpx.AsyncClient(transport=door, base_url="http://127.0.0.1") as client:
            answer = asyncio.create_task(client.get("/api/state"))
            await asyncio.wait([answer], timeout=0.2)
            may_go_on.set()
            await first
            return await answer

    assert snapshots.validate_json(asyncio.run(asked()).content).flow == "virtual"
