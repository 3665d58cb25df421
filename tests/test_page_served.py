"""What is served: headers on every answer, shut doors, the page's own head, and its files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from agent.persona import Profile
from pages.documents import document_of
from pages.security import MAX_BODY, Guard, Rewritten

PROFILE = Profile("Ada <Lovelace>", 'Wrote of "engines"', ("Who are you?", "</script><script>alert(1)</script>"))


async def streamed(request: Request) -> Response:
    return PlainTextResponse("fine")


async def echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
async def guarded() -> AsyncGenerator[httpx.AsyncClient]:
    routes = [
        Route("/echo", echo, methods=["POST"]),
        Route("/gradio_api/upload", streamed, methods=["POST"]),
        Route("/gradio_api/queue/join", streamed, methods=["POST"]),
    ]
    app = Guard(Starlette(routes=routes), "'self' https://friend.test", asyncio.Event())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        yield client


@pytest.mark.parametrize("path", ["/echo", "/gradio_api/upload", "/missing"])
async def test_every_answer_carries_the_headers(guarded: httpx.AsyncClient, path: str) -> None:
    headers = (await guarded.post(path)).headers
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'self' https://friend.test" in policy
    assert "unsafe-eval" not in policy
    assert headers["x-content-type-options"] == "nosniff"


async def test_uploads_are_shut_and_the_queue_is_open(guarded: httpx.AsyncClient) -> None:
    for path in ("/gradio_api/upload", "/gradio_api/upload/", "/gradio_api/upload?upload_id=1"):
        assert (await guarded.post(path, files={"files": b"x"})).status_code == 404
    assert (await guarded.post("/gradio_api/queue/join")).status_code == 200


async def test_a_body_beyond_the_limit_is_not_read(guarded: httpx.AsyncClient) -> None:
    assert (await guarded.post("/echo", content=b"x" * MAX_BODY)).text == str(MAX_BODY)
    assert (await guarded.post("/echo", content=b"x" * (MAX_BODY + 1))).status_code == 413


async def test_a_body_that_hides_its_length_is_cut_off() -> None:
    read: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            read.append(len(message["body"]))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * (MAX_BODY // 2), "more_body": True}

    async def send(message: Any) -> None: ...

    scope: dict[str, Any] = {"type": "http", "path": "/echo", "method": "POST", "headers": []}
    await Guard(app, "'self'", asyncio.Event())(scope, receive, send)
    assert sum(read) <= MAX_BODY


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
    serving = asyncio.create_task(Guard(app, "'self'", closing)(scope, receive, send))
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
