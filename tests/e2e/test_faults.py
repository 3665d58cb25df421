"""What is broken around the replica: it stays up, the visitor reads one sentence, the log says what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.conftest import Opens, Starts
from tests.e2e.peers import Phone
from tests.e2e.programs import copy_of_the_product, free_port
from tests.e2e.raw_api import raw_api
from tests.e2e.replica import Site, alerts_to, provided_by, site, start
from tests.fakes.provider import Answer, Provider, calls, says


async def health(site: Site) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=site.url) as client:
        answer = await client.get("/healthz")
    assert answer.status_code == 200
    assert [secret for secret in site.secrets if secret in answer.text] == []
    return answer.json()


def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


async def test_an_unreachable_provider_is_said_in_one_sentence(
    replica_with: Starts, visitors_of: Opens, phone: Phone
) -> None:
    async with (
        replica_with(**provided_by(f"{nowhere()}/v1"), **alerts_to(phone)) as site,
        visitors_of(site) as visitors,
    ):
        visitor = await visitors.one()
        reply = await visitor.ask("Is anybody there?")
        reference = re.search(r"Reference (\w+)", reply)
        assert reference, reply
        assert reply.count("\n") == 0
        assert (await site.logs(rf"WARNING.*{reference[1]}|ERROR.*{reference[1]}")).count("OPENAI_BASE_URL") == 1
        assert reference[1] in (await health(site))["model"]
        assert reference[1] in await phone.gets(f"{reference[1]}")
        await visitor.page.reload()
        await expect(visitor.questions).to_have_text(["Is anybody there?"])
        again = await visitor.ask("And now?")
        assert "Reference" in again
        assert len([text for text in await phone.texts() if text.startswith("Trouble") and "could not" in text]) == 1


async def test_a_wrong_key_is_named_in_the_log_and_shown_to_nobody(
    replica_with: Starts, visitors_of: Opens, scripted: Provider
) -> None:
    refusal = {"error": {"message": "Incorrect API key provided: sk-e2e-****where.", "code": "invalid_api_key"}}
    scripted.answer = lambda _: Answer(status=401, body=refusal)
    async with replica_with(**provided_by(scripted.base_url)) as site, visitors_of(site) as visitors:
        visitor = await visitors.one()
        reply = await visitor.ask("Do you have a key?")
        assert "Reference" in reply
        assert not re.search("key|401|api", reply, re.IGNORECASE)
        await site.logs("(WARNING|ERROR).*OPENAI_API_KEY")
        scripted.answer = lambda _: says("Now I have.")
        await visitor.button("Try again").last.click()
        await expect(visitor.reply).to_have_text("Now I have.")
        assert (await health(site))["model"] == "ok"


async def test_an_unreachable_telegram_loses_nothing(
    tmp_path: Path, visitors_of: Opens, scripted: Provider, phone: Phone
) -> None:
    folder = tmp_path / "replica"
    telegram = alerts_to(phone)
    details = json.dumps({"email": "late@example.org", "notes": "Can wait."})
    scripted.script = [calls(("gather_user_details", details)), says("Passed on.")]
    down = telegram | {"TELEGRAM_API_URL": nowhere()}
    async with site(folder, **provided_by(scripted.base_url), **down) as first, visitors_of(first) as visitors:
        visitor = await visitors.one()
        assert await visitor.ask("Write to late@example.org, it can wait") == "Passed on."
        await expect(visitor.turns.last).to_contain_text("Passed your details on")
        assert "TELEGRAM_API_URL" in await first.logs("WARNING.*did not go out")
        assert "TELEGRAM_API_URL" in (await health(first))["alerts"]
        assert [contact.email for contact in await first.contacts()] == ["late@example.org"]
    async with site(folder, **provided_by(scripted.base_url), **telegram) as second:
        await phone.gets("late@example.org")
        await second.logs("went out by Telegram")
        assert (await health(second))["alerts"] == "ok"


@pytest.mark.parametrize("what", ["missing", "empty", "unreadable", "a file"])
async def test_knowledge_that_cannot_be_read_is_said(replica_with: Starts, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "notes"
    if what == "a file":
        folder.write_text("not a folder")
    elif what != "missing":
        folder.mkdir()
    if what == "unreadable":
        (folder / "cv.pdf").write_bytes(b"%PDF-1.7 this is none")
        (folder / "notes.md").write_bytes(b"\x00\x01\xfe\xff" * 50)
        (folder / "gone.md").symlink_to(folder / "nowhere.md")
    async with replica_with(KNOWLEDGE_DIR=str(folder)) as site, raw_api(site.url) as api:
        assert (await health(site))["knowledge"] != "ok"
        assert "Knowledge" in site.log or "KNOWLEDGE_DIR" in site.log or "skipped" in site.log
        answer = await api.said("Where were you educated?")
        assert "do not answer that" in answer
        async with httpx.AsyncClient(base_url=site.url) as client:
            assert (await client.get("/")).status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_TURNS", "abc"),
        ("OPENAI_BASE_URL", "sk-this-is-a-key-in-the-wrong-place"),
        ("TELEGRAM_CHAT_ID", "my chat"),
        ("DATABASE_URL", "postgres-with-a-password-hunter2"),
    ],
)
async def test_a_setting_that_cannot_be_used_stops_the_start(tmp_path: Path, name: str, value: str) -> None:
    _, program = start(copy_of_the_product(tmp_path / "replica"), {name: value})
    assert await program.ended() == 2
    lines = program.log.splitlines()
    assert [name in line for line in lines] == [True]
    assert value not in program.log


async def test_a_port_that_is_taken_is_said_in_a_line(replica_with: Starts, tmp_path: Path) -> None:
    async with replica_with() as site:
        port = site.url.rpartition(":")[2]
        _, second = start(copy_of_the_product(tmp_path / "second"), {"GRADIO_SERVER_PORT": port})
        try:
            assert await second.ended() != 0
        finally:
            await second.stop()
        assert "Traceback" not in second.log
        assert port in second.log.splitlines()[-1]
