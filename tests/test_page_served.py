"""What is served: headers on every answer, shut doors, the page's own head, and its files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from agent.persona import Profile
from pages.documents import document_of
from pages.posts import MIN_BODY, Calls, Function
from pages.security import Guard, Rewritten

PROFILE = Profile("Ada <Lovelace>", 'Wrote of "engines"', ("Who are you?", "</script><script>alert(1)</script>"))


CALLS = Calls((Function(0, "ask", 2), Function(3, "chat", 1)), 4000)


class Waiting:
    """One session is known, and one event of it."""

    def knows(self, session: str) -> bool:
        return session == "known"

    def session_of(self, event_id: str) -> str:
        return "known" if event_id == "a" * 32 else event_id


def guard(app: Any, closing: asyncio.Event | None = None) -> Guard:
    return Guard(app, "'self' https://friend.test", closing or asyncio.Event(), CALLS, Waiting())


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


@pytest.fixture
async def guarded() -> AsyncGenerator[httpx.AsyncClient]:
    paths = ("/echo", *(f"/gradio_api/{path}" for path in (*OPEN, *SHUT)))
    app = guard(Starlette(routes=[Route(path, echo, methods=["GET", "POST"]) for path in paths]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        yield client


OPEN = ("queue/join", "run/predict", "run/ask", "call/chat", "cancel", "reset", "info", "heartbeat/known")
SHUT = (
    "upload", "upload_progress", "component_server", "component_server/", "proxy=x", "file=app.py", "file/app.py",
    "process_recording", "deep_link", "runs", "run-history/records", "dev/reload", "vibe-code", "openapi.json",
    "stream/x", "stream/x/y/1/playlist.m3u8", "call/v2/chat", "api/chat", "custom_component/x/client/component/y.js",
    "profiling/traces", "app_id", "token", "heartbeat/x%20y",
)  # fmt: skip


@pytest.mark.parametrize("path", ["/echo", "/gradio_api/upload", "/missing"])
async def test_every_answer_carries_the_headers(guarded: httpx.AsyncClient, path: str) -> None:
    headers = (await guarded.post(path)).headers
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'self' https://friend.test" in policy
    assert "unsafe-eval" not in policy
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", SHUT)
async def test_what_the_page_has_no_use_for_is_shut(guarded: httpx.AsyncClient, path: str) -> None:
    for answer in (await guarded.get(f"/gradio_api/{path}"), await guarded.post(f"/gradio_api/{path}", content=b"{}")):
        assert (answer.status_code, answer.json()) == (404, {"detail": "This is not available here."})


async def test_a_call_reaches_gradio_with_what_is_understood_of_it(guarded: httpx.AsyncClient) -> None:
    posted = {"fn_index": 0, "data": ["Hi", {"path": "/etc/passwd"}], "session_hash": "s-1_", "event_data": {"a": 1}}
    answer = await guarded.post("/gradio_api/queue/join?x=1", json=posted)
    assert answer.json() == {"fn_index": 0, "data": ["Hi", None], "session_hash": "s-1_"}
    halved = json.dumps({"data": ["\ud83d"], "fn_index": 0})
    by_name = await guarded.post("/gradio_api/call/chat", content=halved)
    assert by_name.json() == {"fn_index": 3, "data": ["\ud83d"]}
    event = {"event_id": "a" * 32, "fn_index": 0, "session_hash": "s"}
    assert (await guarded.post("/gradio_api/cancel", json=event | {"more": 1})).json() == event


@pytest.mark.parametrize(
    ("path", "posted"),
    [
        ("queue/join", "{"),
        ("queue/join", "[" * 60_000),
        ("queue/join", "[]"),
        ("queue/join", "\xff"),
        ("queue/join", {"fn_index": 0, "data": ["a", "b"]}),
        ("queue/join", {"fn_index": 0, "data": ["a", "b"], "session_hash": ""}),
        ("queue/join", {"fn_index": 0, "data": ["a", "b"], "session_hash": "x" * 65}),
        ("queue/join", {"fn_index": 0, "data": ["a", "b"], "session_hash": "x\n"}),
        ("queue/join", {"fn_index": 0, "data": ["a", "b"], "session_hash": 7}),
        ("queue/join", {"fn_index": 0, "data": ["a"], "session_hash": "s"}),
        ("queue/join", {"fn_index": 0, "data": None, "session_hash": "s"}),
        ("queue/join", {"fn_index": 0, "data": {"a": 1, "b": 2}, "session_hash": "s"}),
        ("call/chat", {}),
        ("call/chat", {"data": []}),
        ("call/chat", {"data": ["Hi"], "session_hash": "é"}),
        ("run/ask", {"data": ["Hi"]}),
        ("cancel", {"event_id": "x", "fn_index": 0, "session_hash": "s"}),
        ("cancel", {"event_id": "a" * 32, "fn_index": "0", "session_hash": "s"}),
        ("cancel", {"event_id": "a" * 32, "fn_index": 0}),
    ],
)
async def test_a_call_that_gradio_would_fail_at_is_refused_in_a_sentence(
    guarded: httpx.AsyncClient, path: str, posted: Any
) -> None:
    content = posted if isinstance(posted, str) else json.dumps(posted)
    answer = await guarded.post(f"/gradio_api/{path}", content=content)
    assert answer.status_code == 400
    assert answer.json()["detail"].endswith(".")


@pytest.mark.parametrize("number", [1, -1, 10**30, True, "0", 0.5, [], None])
async def test_an_unknown_function_is_not_there(guarded: httpx.AsyncClient, number: object) -> None:
    posted = {"fn_index": number, "data": ["a", "b"], "session_hash": "s"}
    for path in ("queue/join", "run/predict"):
        answer = await guarded.post(f"/gradio_api/{path}", json=posted)
        assert (answer.status_code, answer.json()) == (404, {"detail": "There is no such call."})
    assert (await guarded.post("/gradio_api/call/nobody", json=posted)).status_code == 404


async def test_only_who_asked_for_something_may_listen(guarded: httpx.AsyncClient) -> None:
    strangers = ("queue/data", "queue/data?session_hash=", "queue/data?session_hash=other", f"call/chat/{'b' * 32}")
    for path in strangers:
        answer = await guarded.get(f"/gradio_api/{path}")
        assert (answer.status_code, answer.json()["detail"]) == (404, "Nothing waits for this session here.")
    # Past the guard, there is no such route in this test.
    for path in ("queue/data?session_hash=known", f"call/chat/{'a' * 32}"):
        assert (await guarded.get(f"/gradio_api/{path}")).text == "Not Found"


async def test_a_body_beyond_the_limit_is_not_read(guarded: httpx.AsyncClient) -> None:
    assert len((await guarded.post("/echo", content=b"x" * MIN_BODY)).text) == MIN_BODY
    for path in ("/echo", "/gradio_api/queue/join", "/gradio_api/reset"):
        answer = await guarded.post(path, content=b"x" * (MIN_BODY + 1))
        assert (answer.status_code, answer.json()) == (413, {"detail": "That is too long to be read here."})


@given(st.text(max_size=50))
def test_any_message_that_is_short_enough_can_be_read(text: str) -> None:
    longest = Calls((Function(0, "chat", 1),), 10_000)
    posted = json.dumps({"fn_index": 0, "data": [(text or "\U0001f600") * (10_000 // max(1, len(text)))]})
    assert len(posted) <= longest.max_body
    assert MIN_BODY == Calls((), 10).max_body < longest.max_body


async def test_a_body_that_hides_its_length_is_cut_off() -> None:
    read: list[int] = []
    told: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            read.append(len(message["body"]))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * (MIN_BODY // 2), "more_body": True}

    async def send(message: Any) -> None:
        told.append(message)

    scope: dict[str, Any] = {"type": "http", "path": "/echo", "method": "POST", "headers": []}
    await guard(app)(scope, receive, send)
    assert sum(read) <= MIN_BODY
    await guard(app)({**scope, "path": "/gradio_api/queue/join"}, receive, send)
    assert told[0]["status"] == 413


async def test_an_open_stream_ends_when_the_server_closes() -> None:
    closing = asyncio.Event()
    heard: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        heard.append((await receive())["type"])

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def send(message: Any) -> None: ...

    scope: dict[str, Any] = {"type": "http", "path": "/", "method": "GET", "headers": []}
    serving = asyncio.create_task(guard(app, closing)(scope, receive, send))
    closing.set()
    await asyncio.wait_for(serving, 5)
    assert heard == ["http.disconnect"]


GRADIOS = """<html><head><meta charset="utf-8" />
<meta property="og:title" content="Gradio" /><meta
    property="og:image"
    content="https://elsewhere.test/x.jpg" /><meta name="twitter:title" content="Gradio" />
<link rel="manifest" href="/manifest.json" /></head><body>page</body></html>"""


async def served(profile: Profile, **headers: str) -> str:
    async def page(request: Request) -> Response:
        return HTMLResponse(GRADIOS)

    app = Rewritten(Starlette(routes=[Route("/", page)]), document_of(profile).rewritten)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        response = await client.get("/", headers=headers)
    assert int(response.headers["content-length"]) == len(response.content)
    return response.text


async def test_the_served_page_names_the_replica_and_not_gradio() -> None:
    html = await served(PROFILE)
    assert "<title>Ada &lt;Lovelace&gt; · digital replica</title>" in html
    assert '<meta property="og:title" content="Ada &lt;Lovelace&gt; · digital replica">' in html
    assert "Wrote of &quot;engines&quot;" in html
    assert "Gradio" not in html
    assert "elsewhere.test" not in html
    assert "<body>page</body>" in html


async def test_no_question_can_leave_the_data_of_the_page() -> None:
    assert "</script><script>alert" not in await served(PROFILE)


async def test_a_photo_is_previewed_under_the_address_that_the_visitor_sees(tmp_path: Path) -> None:
    picture = tmp_path / "me.png"
    picture.write_bytes(b"\x89PNG")
    profile = Profile("Ada", "", (), picture)
    headers = {"x-forwarded-proto": "https", "x-forwarded-host": "ada.test"}
    assert 'property="og:image" content="https://ada.test/picture?v=' in await served(profile, **headers)
    assert "og:image" not in await served(PROFILE)  # nobody previews an SVG


async def test_whoever_has_no_picture_has_initials() -> None:
    for picture in (None, Path("missing.png")):
        drawn = document_of(Profile("Ada King Lovelace", "", (), picture)).picture
        assert (drawn.media_type, b">AL<" in drawn.content) == ("image/svg+xml", True)


async def test_the_files_of_the_page_run_nothing_and_are_kept_for_good_under_their_version() -> None:
    document = document_of(PROFILE)
    app = Starlette(routes=document.routes)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        named = await client.get(document.picture.address[1:])
        plain = await client.get("/picture")
    assert "immutable" in named.headers["cache-control"]
    assert plain.headers["cache-control"] == "no-cache"
    assert "default-src 'none'" in plain.headers["content-security-policy"]
