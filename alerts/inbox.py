"""The inbox: what the owner writes to the bot is fetched from Telegram, or pushed by it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from alerts.bot_api import BotApi, Conflict
from alerts.channel import AlertError
from alerts.commands import menu
from alerts.hearing import Hearing
from alerts.inbound import KINDS, number_of
from alerts.pace import back_off_s
from alerts.selftest import WEBHOOK_PATH, Findings, hook_problem, self_test, token_hint
from alerts.telegram import present_chat
from alerts.wire import apart, as_object
from store.records import NotStorable, StoreError
from store.store import Store

if TYPE_CHECKING:
    from agent.settings import Settings

log = logging.getLogger(__name__)

LEASE = "telegram-inbox"
"""Of several processes only the one that holds it fetches: Telegram serves one at a time."""
LEASE_S = 60.0
"""Longer than one poll with all its time-outs."""
POLL_S = 25.0
"""How long one request waits for a message, in seconds."""
LOOK_S = 5.0
"""How often a process that does not fetch looks whether it should, in seconds."""
TEST_AGAIN_S = 600.0
"""How often the self-test is made again while it finds something, in seconds."""
WATCH_S = 60.0
"""How often a webhook is looked at, in seconds."""
ASK_AGAIN_S = 3600.0
"""How long a bot that Telegram refuses is left alone, in seconds: the owner may have mended it at Telegram."""
A_DAY_S = 86_400.0
"""How long the self-test is not made again when it found nothing, in seconds."""
REFUSALS = 5
"""So many refusals in a row count: one may come from something else on the way."""
OUR_HOOK = (
    "Telegram brings the bot's messages to another process of your replica, one with PUBLIC_URL: "
    "if that is no longer there, start this one again"
)
AT_ONCE_S = 1.0
"""An empty answer that comes sooner was not waited for: not every relay waits."""


def open_inbox(settings: Settings, store: Store, heard: Callable[[], Awaitable[None]]) -> Inbox | None:
    """The inbox of the owner's bot; None when there is no bot, or nobody who may be heard."""
    token = settings.telegram_bot_token.get_secret_value() if settings.telegram_bot_token else ""
    if token and (hint := token_hint(token)):
        log.warning("%s", hint)
    if not token or not settings.telegram_chat_id:
        return None
    public_url = settings.public_url or ""
    return Inbox(store, token, settings.telegram_chat_id, settings.telegram_api_url, public_url=public_url, heard=heard)


def webhook_secret(token: str) -> str:
    """What Telegram shows with each update: the same in every process and after each restart."""
    return hmac.new(token.encode(), b"CarbonCopy's webhook at Telegram", hashlib.sha256).hexdigest()


class Inbox:
    """Owns the worker, and the connections to the Bot API.

    Args:
        store: keeps what comes of the owner's messages.
        token: the bot's.
        chat_id: the owner's chat.
        api_url: where the Bot API is.
        public_url: where Telegram can reach the page; empty: messages are fetched.
        heard: awaited after each message of the owner's.
        back_off: seconds to wait after so many failed tries.
        poll_s: how long one request waits for a message, in seconds.
        look_s: how often to look whether another process has stopped fetching, in seconds.
        test_again_s: how often the self-test is made again while it finds something.
        watch_s: how often a webhook is looked at.
    """

    def __init__(
        self,
        store: Store,
        token: str,
        chat_id: str,
        api_url: str,
        *,
        public_url: str = "",
        heard: Callable[[], Awaitable[None]],
        back_off: Callable[[int], float] = back_off_s,
        poll_s: float = POLL_S,
        look_s: float = LOOK_S,
        test_again_s: float = TEST_AGAIN_S,
        watch_s: float = WATCH_S,
    ) -> None:
        self.secret = webhook_secret(token)
        """What comes with each update that Telegram pushes."""
        self._store = store
        self._api = BotApi(token, api_url)
        self._chat_id = chat_id
        self._hearing = Hearing(store, token.partition(":")[0], chat_id, heard)
        self._hook = f"{public_url.rstrip('/')}{WEBHOOK_PATH}" if public_url else ""
        self._back_off = back_off
        self._poll_s = poll_s
        self._look_s = look_s
        self._test_again_s = test_again_s
        self._watch_s = watch_s
        self._holder = secrets.token_hex(8)
        self._offset: int | None = None
        """Of the next update; None: the store knows."""
        self._running = False
        self._has_begun = False
        """What an earlier program left at Telegram was put right."""
        self._failures = 0
        self._problem = ""
        self._contested = False
        """The problem is that somebody else fetches."""
        self._findings = Findings("")
        self._test_at = 0.0
        """When the self-test is due again, on the monotonic clock."""

    @property
    def is_pushed(self) -> bool:
        """Telegram brings the messages to WEBHOOK_PATH."""
        return bool(self._hook)

    def status(self) -> str:
        """`ok`, or what is wrong in plain words."""
        if not self._running:
            return "the worker that hears the owner does not run"
        return "; ".join(dict.fromkeys(filter(None, [*self._findings.problems, self._problem]))) or "ok"

    async def take(self, update: Mapping[str, Any]) -> bool:
        """Does what an update asks for that Telegram has pushed. False: it has to be pushed again."""
        try:
            await self._handle(update)
        except StoreError as error:
            log.warning("A message to the bot has to wait: %s", error)
            return False
        return True

    async def _handle(self, update: Mapping[str, Any]) -> None:
        """What cannot be understood counts as done: it must not come again and again."""
        try:
            await self._hearing.handle(update)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, NotStorable):
                raise
            log.error("A message to the bot could not be understood (%s)", type(error).__name__)

    async def run(self) -> None:
        """Hears the owner until it is cancelled. A poll under way is left alone then: what it brings comes again."""
        self._running = True
        try:
            while True:
                wait_s = await self._step()
                await asyncio.sleep(wait_s)
        finally:
            self._running = False
            with suppress(StoreError):
                await self._store.drop_lease(LEASE, self._holder)

    def close(self) -> None:
        """Closes the connections to the Bot API."""
        self._api.close()

    async def _step(self) -> float:
        """Works once. Returns how long nothing is to be done, in seconds."""
        try:
            if time.monotonic() >= self._test_at:
                await self._test()
            wait_s = await (self._watch() if self._hook else self._fetch())
        except AlertError as error:
            return self._failed(error.reason, error)
        except StoreError as error:
            return self._failed(f"the inbox cannot use the store: {error}")
        except Exception as error:
            # Nothing may end the worker. The text may hold what somebody wrote.
            return self._failed(f"the inbox failed in an unknown way ({type(error).__name__})")
        return wait_s

    def _failed(self, reason: str, error: AlertError | None = None) -> float:
        self._failures += 1
        wait_s = self._back_off(self._failures)
        self._contested = isinstance(error, Conflict)
        if self._contested:
            self._test_at = 0.0  # it may be a webhook, of which the self-test says more
            if self._findings.hook:
                reason = OUR_HOOK
        elif error and error.permanent and self._failures >= REFUSALS:
            wait_s = ASK_AGAIN_S
        elif error and error.retry_after_s is not None:
            wait_s = min(TEST_AGAIN_S, max(1.0, error.retry_after_s))
        elif self._hook:
            wait_s = min(self._watch_s, wait_s)
        if reason != self._problem or wait_s == ASK_AGAIN_S:
            log.warning("What you write to the bot is not heard: %s. Next try in %.0f s.", reason, wait_s)
        self._problem = reason
        return wait_s

    def _succeeded(self) -> None:
        if self._problem:
            log.info("What you write to the bot is heard again")
        self._failures, self._problem, self._contested = 0, "", False

    # What is asked of Telegram

    async def _test(self) -> None:
        found = await self_test(self._ask, await present_chat(self._store, self._chat_id))
        self._hearing.bot_name = found.bot
        for problem in found.problems:
            if problem not in self._findings.problems:
                log.warning("Telegram: %s", problem)
        if not found.problems and found.bot != self._findings.bot:
            log.info("Telegram: @%s hears you%s", found.bot, ", by its webhook" if self._hook else "")
        self._findings = found
        if not found.foreign:
            await self._set_up(found)
        self._has_begun = True
        self._test_at = time.monotonic() + (self._test_again_s if found.problems else A_DAY_S)

    async def _set_up(self, found: Findings) -> None:
        if not self._has_begun and self._hook:
            await self._set_hook()
        elif not self._has_begun and found.hook:
            # Later it would be that of a newer process. With the lease, an older one does not set it again.
            await self._store.take_lease(LEASE, self._holder, LEASE_S)
            await self._ask("deleteWebhook", {})
        with suppress(AlertError):  # without their menu the commands work all the same
            await self._ask("setMyCommands", {"commands": menu()})

    async def _set_hook(self) -> None:
        # One at a time, so that they come in their order: a lower number counts as done.
        hook = {"url": self._hook, "secret_token": self.secret, "allowed_updates": KINDS, "max_connections": 1}
        await self._ask("setWebhook", hook)

    async def _watch(self) -> float:
        """Looks whether Telegram brings the messages."""
        if self._findings.foreign:
            return self._test_again_s
        info = as_object(await self._ask("getWebhookInfo", {}))
        if not info.get("url"):
            await self._set_hook_again()
        elif problem := hook_problem(info, self._hook):
            raise AlertError(problem)
        self._succeeded()
        return self._watch_s

    async def _set_hook_again(self) -> None:
        """Somebody has taken it away: a process that fetches did when it started, and may have ended since."""
        if not await self._store.take_lease(LEASE, self._holder, LEASE_S):
            raise AlertError("another process of your replica fetches what you write: it has no PUBLIC_URL")
        try:
            await self._set_hook()
        finally:
            await self._store.drop_lease(LEASE, self._holder)
        log.info("Telegram had no webhook any more: it is set again")

    async def _fetch(self) -> float:
        """Fetches once, if no other process does."""
        if self._findings.foreign:
            return self._test_again_s
        if not await self._store.take_lease(LEASE, self._holder, LEASE_S):
            self._offset = None
            self._succeeded()
            return self._look_s
        if self._offset is None:
            self._offset = await self._hearing.offset()
        # After a fault the first poll does not wait, so that the status does not lag. That others fetch shows only in a
        # long one.
        poll_s = 0 if self._problem and not self._contested else self._poll_s
        began = time.monotonic()
        asked = {"offset": self._offset, "timeout": round(poll_s), "allowed_updates": KINDS}
        updates = await self._ask("getUpdates", asked, wait_s=poll_s)
        self._succeeded()
        found = [as_object(one) for one in cast(list[Any], updates)] if isinstance(updates, list) else []
        for update in found:
            await self._handle(update)
            if (number := number_of(update)) is not None:
                self._offset = number + 1  # which the next poll confirms
        if found and number_of(found[-1]) is None:
            return AT_ONCE_S  # they come again
        return AT_ONCE_S if poll_s and not found and time.monotonic() - began < AT_ONCE_S else 0

    async def _ask(self, method: str, payload: Mapping[str, Any], wait_s: float = 0) -> Any:
        return await apart(lambda: self._api.call(method, payload, wait_s=wait_s))
