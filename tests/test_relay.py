"""The relay that the documentation offers to owners whose host blocks Telegram, run by node."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests

from alerts.bot_api import BotApi
from tests.fakes.telegram import FakeTelegram, Status

WORKER = Path(__file__).parents[1] / "docs" / "relay" / "worker.js"

# What Cloudflare does around the worker: a request in, an answer out.
HOST = """
import http from "node:http";
import { readFileSync } from "node:fs";
const [file, BOT_ID, TELEGRAM] = process.argv.slice(1);
const code = readFileSync(file, "utf8");
const worker = (await import("data:text/javascript," + encodeURIComponent(code))).default;
const server = http.createServer(async (incoming, outgoing) => {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const body = incoming.method === "POST" ? Buffer.concat(chunks) : undefined;
  const request = new Request("http://relay" + incoming.url, { method: incoming.method, body });
  const answer = await worker.fetch(request, { BOT_ID, TELEGRAM });
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  outgoing.end(Buffer.from(await answer.arrayBuffer()));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""


@pytest.fixture
def relay(api: FakeTelegram) -> Iterator[str]:
    node = shutil.which("node")
    if not node:
        pytest.skip("the relay needs node, which is not installed")
    bot_id = api.token.partition(":")[0]
    command = [node, "--input-type=module", "-e", HOST, "--", str(WORKER), bot_id, api.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield f"http://127.0.0.1:{running.stdout.readline().strip()}"
        running.kill()


def test_the_relay_passes_the_bots_calls_on(api: FakeTelegram, relay: str) -> None:
    with closing(BotApi(api.token, relay)) as bot:
        assert bot.call("getMe", {})["username"] == api.username
        bot.call("sendMessage", {"chat_id": api.chat_id, "text": "Grüße 🙂"})
    assert [message.text for message in api.messages] == ["Grüße 🙂"]


def test_the_relay_passes_telegrams_refusals_on(api: FakeTelegram, relay: str) -> None:
    api.fail_next(Status(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 7}}))
    answer = requests.post(f"{relay}/bot{api.token}/getMe", json={}, timeout=10)
    assert (answer.status_code, answer.json()["parameters"]) == (429, {"retry_after": 7})


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/bot1:AAF-fake_token_of_another_bot_1234567/getMe",
        "/file/bot{token}/photos/file_1.jpg",
        "/bot{token}/getMe/../../x",
        "/bot{token}/",
        "/x/bot{token}/getMe",
        "//elsewhere.example/bot{token}/getMe",
    ],
)
def test_the_relay_passes_nothing_else_on(api: FakeTelegram, relay: str, path: str) -> None:
    answer = requests.post(relay + path.replace("{token}", api.token), json={}, timeout=10)
    assert (answer.status_code, answer.json()["ok"]) == (404, False)
    assert api.requests == []


def test_the_relay_passes_no_get_on(api: FakeTelegram, relay: str) -> None:
    assert requests.get(f"{relay}/bot{api.token}/getMe", timeout=10).status_code == 404
    assert api.requests == []


def test_the_relay_takes_nothing_large(api: FakeTelegram, relay: str) -> None:
    answer = requests.post(f"{relay}/bot{api.token}/getMe", data=b"x" * 1_000_001, timeout=10)
    assert answer.status_code == 413
    assert api.requests == []
