"""The webhook against a strict server: what arrives, what the owner is told, and that its address stays hidden."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest

from alerts.webhook import Webhook
from tests.alert_house import QUICK, assert_hidden, failure
from tests.fakes.telegram import FakeWebhook, Fault, Hangup, Silence, Status


@pytest.fixture
def webhook(hook: FakeWebhook) -> Iterator[Webhook]:
    with closing(Webhook(hook.address, timeout_s=QUICK)) as webhook:
        yield webhook


async def test_the_webhook_gets_text_and_content(hook: FakeWebhook, webhook: Webhook) -> None:
    await webhook.send("New contact: Jane\nC-7KQ2M")
    (message,) = await hook.messages_arrive(1)
    assert message.payload == {"text": "New contact: Jane\nC-7KQ2M", "content": "New contact: Jane\nC-7KQ2M"}


async def test_the_webhook_gets_long_text_in_pieces(hook: FakeWebhook, webhook: Webhook) -> None:
    text = "line of a long text\n" * 400
    await webhook.send(text)
    assert "".join(message.text for message in hook.messages) == text


@pytest.mark.parametrize(
    ("fault", "words", "permanent", "retry_after_s"),
    [
        (Status(404, "no_service"), "(404): check ALERT_WEBHOOK_URL", True, None),
        (Status(400, "invalid_payload"), "(400): check ALERT_WEBHOOK_URL", False, None),
        (Status(302, "", {"Location": "/"}), "(302): check ALERT_WEBHOOK_URL", True, None),
        (Status(429, {"message": "rate limited", "retry_after": 0.5}), "a pause", False, 0.5),
        (Status(429, "", {"Retry-After": "3"}), "a pause", False, 3),
        (Status(503, "", {"Retry-After": "30"}), "fault of its own (503)", False, 30),
        (Hangup(), "cannot reach the webhook (the connection broke off)", False, None),
        (Silence(), "(it did not answer in time)", False, None),
    ],
)
async def test_the_webhook_says_what_to_do_and_hides_its_address(
    hook: FakeWebhook,
    webhook: Webhook,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    words: str,
    permanent: bool,
    retry_after_s: float | None,
) -> None:
    caplog.set_level(logging.DEBUG)
    hook.fail_next(fault)
    error = await failure(webhook)
    assert words in error.reason
    assert (error.permanent, error.retry_after_s) == (permanent, retry_after_s)
    assert_hidden(hook.path, error, caplog)


@pytest.mark.parametrize("address", ["https://hooks.invalid/secret?key=secret", "no address, but a secret", "http://"])
async def test_a_webhook_that_cannot_be_reached_hides_its_address(
    caplog: pytest.LogCaptureFixture, address: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with closing(Webhook(address)) as webhook:
        error = await failure(webhook)
    assert "cannot reach the webhook" in error.reason
    assert_hidden("secret", error, caplog)
