"""The inbox and what nobody can understand or keep: it is skipped, and what comes later is heard."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert

from store.store import Store
from store.tables import alert_messages
from tests.fakes.phone import Phone
from tests.fakes.telegram import FakeTelegram
from tests.inbox_house import inbox_of, listening


@pytest.fixture
def owner(api: FakeTelegram) -> Phone:
    return Phone(api)


async def test_what_cannot_be_understood_does_not_come_for_ever(api: FakeTelegram, store: Store, owner: Phone) -> None:
    api.update(message={"message_id": "seven", "chat": [], "text": 7})
    api.update(message={"message_id": 7, "chat": {"id": 4242, "type": "private"}, "text": ["/pause"]})
    for number in (2**63, 2**70, True):
        api.update(message={"message_id": number, "chat": {"id": 4242, "type": "private"}, "text": "/help"})
    owner.writes("/help")
    async with listening(inbox_of(api, store)):
        await api.is_read()
    assert (await store.alert_counts())["pending"] == 1


class Picky(Store):
    """Its database takes no update of this number."""

    async def handle_update(self, update_id: int, *args: Any, **more: Any) -> bool:
        if update_id == 1000:
            await self._db.write(lambda connection: connection.execute(insert(alert_messages).values(message_id=2**70)))
        return await super().handle_update(update_id, *args, **more)


@pytest.mark.both_databases
async def test_what_the_database_never_takes_keeps_nothing_later_from_being_heard(
    api: FakeTelegram, store: Store, owner: Phone, caplog: pytest.LogCaptureFixture
) -> None:
    owner.writes("/help")
    owner.writes("/pause")
    async with listening(inbox_of(api, Picky(store._db))):  # pyright: ignore[reportPrivateUsage]
        await api.is_read()
    assert await store.state("paused") is not None
    assert "A message to the bot could not be understood" in caplog.text
