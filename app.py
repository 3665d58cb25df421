"""CarbonCopy: puts the parts together and serves the page. settings → store → toolkit → replica → pages → serve."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import date, timedelta
from typing import TYPE_CHECKING, Protocol

from agent.answers import Answers
from agent.briefing import Briefing
from agent.finding.encoder import LocalEncoder
from agent.finding.index import Index, open_index
from agent.finding.index_file import NoFullText
from agent.fitting import Fitting
from agent.knowledge import EDITION
from agent.library import Library, shelve
from agent.limits import Allowance, Ceiling, Gate
from agent.log import open_log
from agent.loop import Replica
from agent.meaning import open_meaning
from agent.models import chat_model, counting, resting_model
from agent.opening import opening_lines
from agent.reception import OnTrouble, Reception
from agent.room import BYTES_PER_TOKEN, room_for
from agent.settings import Settings, SettingsError, load_settings, prepare_environment, read_environment
from alerts.channel import Channel
from alerts.inbox import Inbox, open_inbox
from alerts.outbox import Outbox
from alerts.selftest import WEBHOOK_PATH
from alerts.telegram import Telegram
from alerts.webhook import Webhook
from store.records import StoreError
from store.store import Store
from tools.likely_addresses import likely_addresses_in
from tools.registry import toolkit

if TYPE_CHECKING:
    from agent.metrics import Metrics
    from pages.probes import Ask

log = logging.getLogger("carboncopy")

DATABASE_FILE = "carboncopy.db"


def main() -> int:
    """Serves until it is told to stop. Returns the exit code: 2 when a setting cannot be used."""
    open_log()
    try:
        settings = load_settings(read_environment())
        open_log(settings.secrets)
        store = Store.open(database_url(settings))
    except (SettingsError, StoreError) as error:
        for line in str(error).splitlines():
            log.error("%s", line)
        return 2
    serve(settings, store)
    return 0


def serve(settings: Settings, store: Store) -> None:
    """Builds the house and opens the door."""
    # Gradio takes seconds to import, and reads the environment while it does.
    prepare_environment()
    from pages.hooks import updates_route
    from pages.page import chat_page
    from pages.probes import health_route, metrics_route
    from pages.serving import serve as serve_page

    outbox = Outbox(store, channels(settings, store))
    inbox = open_inbox(settings, store, heard=lambda: outbox.unblock(Telegram.name))
    tools = toolkit(outbox)
    metrics = open_metrics(settings)
    # The keyless model uses no tokens, so that there is nothing to be used up.
    allowance = Allowance(settings.daily_tokens if settings.has_provider else 0, store.tokens_since)
    room = room_for(tools, settings.context_tokens, settings.max_output_tokens, settings.max_turns)
    index, encoder, on_call = index_in(settings), LocalEncoder(), counting(allowance, metrics)
    meaning = open_meaning(settings, index, encoder, on_call, counting(None, metrics))
    library = Library(
        settings.knowledge_dir,
        index,
        lambda found: shelve(found, settings.owner_name, tools, room),
        room,
        meaning.search,
    )
    answers = Answers(store, room.for_answers * BYTES_PER_TOKEN)
    model = chat_model(settings, library, answers, encoder, on_call, likely_addresses_in)
    resting = resting_model(library, answers, encoder, likely_addresses_in)
    replica = Replica(
        model,
        tools,
        library.shelf.persona,
        max_turns=settings.max_turns,
        reply_timeout_s=settings.reply_timeout_s,
    )
    reception = Reception(
        replica,
        store,
        max_replies=settings.max_concurrent_replies,
        max_message_chars=settings.max_message_chars,
        on_trouble=tell_of_trouble(outbox),
        gate=Gate(settings.messages_per_minute),
        ceiling=Ceiling(allowance, resting, tell_of_ceiling(outbox)),
        watch=metrics,
        briefing=Briefing(library, answers, Fitting(room, can_write=True), quotes=not settings.has_provider),
        is_paused=paused_in(store),
    )
    for level, line in opening_lines(settings, library.shelf, room, DATABASE_FILE):
        log.log(level, "%s", line)
    page = chat_page(
        reception,
        library.shelf.profile,
        max_replies=settings.max_concurrent_replies,
        max_message_chars=settings.max_message_chars,
        on_feedback=store.set_feedback,
        newest=store.news,
        is_closed=paused_in(store),
        passages_of=library.passages_of,
        answers=answers,
        trusted_proxies=settings.trusted_proxies,
    )
    routes = [health_route(health(settings, library, reception, outbox, inbox, store) | {"line": page.line.status})]
    if metrics:
        from agent.metrics import CONTENT_TYPE

        routes.append(metrics_route(numbers(metrics, reception, store), CONTENT_TYPE))
    if inbox and inbox.is_pushed:
        routes.append(updates_route(WEBHOOK_PATH, inbox.secret, inbox.take))
    serve_page(
        page,
        host=settings.gradio_server_name,
        port=settings.gradio_server_port,
        routes=routes,
        lifespan=alive(model.start, (encoder, model, resting, meaning, store), library, outbox, inbox),
        frame_ancestors=settings.frame_ancestors,
    )


def database_url(settings: Settings) -> str:
    """DATABASE_URL, or a file in the data folder."""
    if settings.database_url:
        return settings.database_url.get_secret_value()
    return f"sqlite:///{settings.data_dir.resolve() / DATABASE_FILE}"


def index_in(settings: Settings) -> Index | None:
    """The index over the owner's files, in the data folder; None: this machine has none."""
    try:
        return open_index(settings.data_dir, EDITION)
    except NoFullText as error:
        log.warning("%s", error)
        return None


def open_metrics(settings: Settings) -> Metrics | None:
    """The numbers for Prometheus, if they are wanted."""
    if not settings.metrics:
        return None
    from agent.metrics import Metrics

    return Metrics()


def channels(settings: Settings, store: Store) -> list[Channel]:
    """Ways to the owner's phone, the first one first."""
    found: list[Channel] = []
    if settings.telegram_bot_token and settings.telegram_chat_id:
        token = settings.telegram_bot_token.get_secret_value()
        found.append(Telegram(token, settings.telegram_chat_id, settings.telegram_api_url, store))
    if settings.alert_webhook_url:
        found.append(Webhook(settings.alert_webhook_url.get_secret_value()))
    return found


def paused_in(store: Store) -> Callable[[], Awaitable[bool]]:
    """Whether the owner has closed the chat for a while."""

    async def is_paused() -> bool:
        return await store.state("paused") is not None

    return is_paused


def tell_of_trouble(outbox: Outbox) -> OnTrouble:
    """Alerts the owner when replies fail: the outbox lets one through an hour."""

    async def tell(reference: str) -> None:
        await outbox.trouble("reply", f"Your replica could not answer a visitor. Look for {reference} in the log.")

    return tell


def tell_of_ceiling(outbox: Outbox) -> Callable[[date], Awaitable[object]]:
    """Alerts the owner that the day's tokens are used up: once a day, over restarts and several machines."""

    async def tell(day: date) -> bool:
        text = (
            "Your replica has used up its tokens for today (DAILY_TOKENS). "
            "Until midnight UTC it quotes its notes, and still takes addresses."
        )
        return await outbox.trouble(f"daily tokens {day}", text, within=timedelta(days=1))

    return tell


class Closes(Protocol):
    async def close(self) -> None: ...


def alive(
    start: Callable[[], object], owned: Sequence[Closes], library: Library, outbox: Outbox, inbox: Inbox | None
) -> Callable[[object], AbstractAsyncContextManager[None]]:
    """What runs beside the page, from its start to its end; `owned` closes in its order."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncGenerator[None]:
        async with AsyncExitStack() as ending:
            start()
            for one in reversed(owned):
                ending.push_async_callback(one.close)
            ending.callback(outbox.close)
            workers = [asyncio.create_task(outbox.run()), asyncio.create_task(library.keep_up())]
            if inbox:
                ending.callback(inbox.close)
                workers.append(asyncio.create_task(inbox.run()))
            yield
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    return lifespan


def health(
    settings: Settings,
    library: Library,
    reception: Reception,
    outbox: Outbox,
    inbox: Inbox | None,
    store: Store,
) -> dict[str, Ask]:
    """How the parts are: `ok` each, or what is wrong in plain words."""

    async def model() -> str:
        no_model = "" if settings.has_provider else "no model is configured, so notes are quoted; set OPENAI_API_KEY"
        return reception.trouble or no_model or "ok"

    async def files() -> str:
        knowledge = library.shelf.knowledge
        return (
            knowledge.problem or "; ".join(report.line() for report in knowledge.reports if report.needs_care) or "ok"
        )

    async def alerts() -> str:
        found = [outbox.status(), inbox.status() if inbox else "ok"]
        return "; ".join(dict.fromkeys(one for one in found if one != "ok")) or "ok"

    async def kept() -> str:
        try:
            await store.ping()
        except StoreError as error:
            return str(error)
        return "ok"

    return {"model": model, "knowledge": files, "alerts": alerts, "store": kept}


def numbers(metrics: Metrics, reception: Reception, store: Store) -> Ask:
    """What Prometheus is told, as it stands when it asks."""
    metrics.watch_line(lambda: reception.running, lambda: reception.waiting)

    async def text() -> str:
        return metrics.text(await store.alert_counts())

    return text


if __name__ == "__main__":
    sys.exit(main())
