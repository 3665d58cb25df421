"""More than sixty alerts an hour: the owner's phone stays quiet, and nothing is lost."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alerts.channel import AlertError
from alerts.delivery import HOUR
from alerts.outbox import PACE, Outbox
from alerts.telegram import Telegram
from store.records import Contact, Question, Sent
from store.store import Store
from tests.alert_house import DOWN, JANE, Clock, at_once, deliver, running
from tests.fakes.telegram import FakeTelegram, Silence

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MOMENT = timedelta(seconds=1)


class Phone:
    """A channel that keeps what it gets, and takes nothing while it is off."""

    name = "phone"
    fingerprint = "of the phone"

    def __init__(self) -> None:
        self.off = False
        self.texts: list[str] = []

    async def send(self, text: str, reply_to: int | None = None) -> Sent:
        if self.off:
            raise AlertError("the phone is off")
        self.texts.append(text)
        return Sent("phone", (len(self.texts),))

    def close(self) -> None:
        """Nothing is open."""


async def ask(outbox: Outbox, *numbers: int) -> None:
    """From ten visitors at once, for one may not ask so much."""
    for number in numbers:
        await outbox.question(Question(f"talk {number // 10}", f"What is {number}?"), [])


def numbers_in(texts: list[str]) -> list[int]:
    return [int(number) for text in texts for number in re.findall(r"What is (\d+)\?", text)]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def phone() -> Phone:
    return Phone()


# When


async def test_sixty_ring_one_by_one_and_the_others_come_bundled(store: Store, phone: Phone, clock: Clock) -> None:
    outbox = Outbox(store, [phone], now=clock)
    await ask(outbox, *range(200))
    assert await deliver(outbox) > 0
    assert len(phone.texts) == 60
    clock.ahead = PACE.digest_every - MOMENT
    await deliver(outbox)
    assert len(phone.texts) == 60
    for minutes, messages in ((10, 62), (20, 63), (30, 63)):
        clock.ahead = timedelta(minutes=minutes) + MOMENT
        await deliver(outbox)
        assert len(phone.texts) == messages
    assert [text.splitlines()[0] for text in phone.texts[60:]] == [
        "95 alerts in one: 95 questions",
        "5 alerts in one: 5 questions",
        "40 alerts in one: 40 questions",
    ]
    assert numbers_in(phone.texts) == list(range(200))
    assert (await store.alert_counts())["sent"] == 200


async def test_a_restart_does_not_start_the_count_anew(store: Store, url: str, phone: Phone, clock: Clock) -> None:
    outbox = Outbox(store, [phone], now=clock)
    await ask(outbox, *range(62))
    await deliver(outbox)
    after = Store.open(url)
    await deliver(Outbox(after, [phone], now=clock))
    assert len(phone.texts) == 60
    clock.ahead = PACE.digest_every + MOMENT
    await deliver(Outbox(after, [phone], now=clock))
    await after.close()
    assert phone.texts[60].startswith("2 alerts in one: 2 questions\n")


async def test_one_that_waited_alone_goes_out_as_it_is(store: Store, phone: Phone, clock: Clock) -> None:
    outbox = Outbox(store, [phone], now=clock)
    await ask(outbox, *range(60))
    await deliver(outbox)
    await outbox.contact(JANE, ["Visitor: Hello"])
    await deliver(outbox)
    assert len(phone.texts) == 60
    clock.ahead = PACE.digest_every + MOMENT
    await deliver(outbox)
    assert phone.texts[60].startswith("New contact: Jane Doe\n")
    assert "> Visitor: Hello" in phone.texts[60]


async def test_after_a_quiet_hour_alerts_ring_one_by_one_again(store: Store, phone: Phone, clock: Clock) -> None:
    outbox = Outbox(store, [phone], now=clock)
    await ask(outbox, *range(60))
    await deliver(outbox)
    clock.ahead = HOUR + MOMENT
    await ask(outbox, 60, 61)
    await deliver(outbox)
    assert [numbers_in([text]) for text in phone.texts[60:]] == [[60], [61]]


async def test_the_running_worker_sends_the_digest(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    outbox = Outbox(store, [telegram], now=clock)
    await ask(outbox, *range(62))
    await deliver(outbox)
    clock.ahead = PACE.digest_every + MOMENT
    async with running(outbox):
        messages = await api.messages_arrive(61)
    assert numbers_in([messages[60].text]) == [60, 61]


@pytest.mark.parametrize(
    ("sent", "minutes_ago", "expected"),
    [
        (0, None, (1, 0)),
        (59, 0, (1, 0)),
        (60, 0, (PACE.digest_alerts, 600)),
        (60, 4, (PACE.digest_alerts, 360)),
        (500, 10, (PACE.digest_alerts, 0)),
        (60, 59, (PACE.digest_alerts, 0)),
    ],
)
def test_the_next_message_waits_only_beyond_sixty(
    sent: int, minutes_ago: int | None, expected: tuple[int, float]
) -> None:
    last = None if minutes_ago is None else NOW - timedelta(minutes=minutes_ago)
    assert PACE.room(sent, last, NOW) == expected


# Nothing is lost


async def test_a_digest_that_fails_marks_none_of_its_alerts_and_is_sent_again(
    store: Store, phone: Phone, clock: Clock
) -> None:
    outbox = Outbox(store, [phone], now=clock, back_off=lambda _: 100)
    await ask(outbox, *range(70))
    await deliver(outbox)
    clock.ahead, phone.off = PACE.digest_every + MOMENT, True
    await deliver(outbox)
    assert await store.alert_counts() == {"pending": 0, "failed": 10, "kept": 0, "sent": 60}
    clock.ahead, phone.off = clock.ahead + timedelta(seconds=100), False
    await deliver(outbox)
    assert numbers_in(phone.texts) == list(range(70))
    assert (await store.alert_counts())["sent"] == 70


async def test_a_digest_whose_process_died_before_it_was_marked_is_sent_again(
    store: Store, phone: Phone, clock: Clock
) -> None:
    outbox = Outbox(store, [phone], now=clock)
    await ask(outbox, *range(65))
    await deliver(outbox)
    clock.ahead = PACE.digest_every + MOMENT
    assert len(await store.claim_due_alerts(PACE.digest_alerts, clock(), "dead")) == 5  # and then the process died
    await deliver(Outbox(store, [phone], now=clock))
    assert len(phone.texts) == 60
    clock.ahead += PACE.lease
    await deliver(Outbox(store, [phone], now=clock))
    assert numbers_in(phone.texts) == list(range(65))


async def test_nothing_of_a_digest_is_marked_before_it_was_taken(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    outbox = Outbox(store, [telegram], now=clock)
    await ask(outbox, *range(65))
    await deliver(outbox)
    clock.ahead = PACE.digest_every + MOMENT
    silence = Silence()
    api.fail_next(silence)
    async with running(outbox):
        await api.requests_arrive(61)
        assert await store.alert_counts() == {"pending": 5, "failed": 0, "kept": 0, "sent": 60}
        silence.over.set()
    assert (await store.alert_counts())["sent"] == 65


async def test_what_has_gone_out_of_a_digest_that_broke_off_is_not_told_again_with_newer_alerts(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    outbox = Outbox(store, [telegram], now=clock, back_off=at_once)
    for number in range(160):
        await outbox.question(Question(f"talk {number // 10}", f"What is {number}? {'x' * 100}"), [])
    await deliver(outbox)
    assert len(api.messages) == 60
    clock.ahead = PACE.digest_every + MOMENT
    api.fail_next(None, DOWN)
    await deliver(outbox)
    assert 60 < (await store.alert_counts())["sent"] < 160
    await ask(outbox, *range(160, 180))
    clock.ahead += PACE.digest_every + MOMENT
    await deliver(Outbox(store, [telegram], now=clock))  # of another process
    assert (await store.alert_counts())["sent"] == 180
    assert numbers_in([message.text for message in api.messages[60:]]) == list(range(60, 180))
    assert all(" alerts in one: " in message.text for message in api.messages[60:])


async def test_the_rest_of_one_long_alert_is_not_told_again_in_a_digest(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    outbox = Outbox(store, [telegram], now=clock, back_off=lambda _: 100)
    await ask(outbox, *range(59))
    await deliver(outbox)
    await outbox.contact(Contact("talk", "jane@example.org", "jane@example.org", "ski " * 2000), [])
    api.fail_next(None, DOWN)
    assert await outbox.deliver_next() == 0  # it has gone out by a half
    await ask(outbox, 59)
    await deliver(outbox)
    await ask(outbox, 60, 61)
    clock.ahead += PACE.digest_every + MOMENT
    await deliver(outbox)
    texts = [message.text for message in api.messages[59:]]
    assert "".join(texts).count("jane@example.org") == 1
    assert "".join(texts).count("ski") == 2000
    assert sorted(numbers_in(texts)) == [59, 60, 61]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=6)
@given(bursts=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 80), st.booleans()), min_size=1, max_size=5))
async def test_however_alerts_come_each_arrives_once_and_the_phone_stays_quiet(
    tmp_path: Path, bursts: list[tuple[int, int, bool]]
) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/{uuid4().hex}.sqlite3")
    clock, phone = Clock(), Phone()
    outbox = Outbox(store, [phone], now=clock, back_off=lambda _: 60)
    asked, minute = 0, 0
    rang: list[int] = []
    for pauses, count, off in [*bursts, (0, 0, False), (24, 0, False)]:
        for _ in range(pauses):
            minute += 5
            clock.ahead = timedelta(minutes=minute)
            await deliver(outbox)
            rang += [minute] * (len(phone.texts) - len(rang))
        phone.off = off
        await ask(outbox, *range(asked, asked + count))
        asked += count
    await store.close()
    assert sorted(numbers_in(phone.texts)) == list(range(asked))
    busiest = max((sum(end - 60 < at <= end for at in rang) for end in rang), default=0)
    assert busiest <= PACE.an_hour + 6


async def test_contacts_are_not_kept_behind_a_crowd_of_questions(store: Store, phone: Phone, clock: Clock) -> None:
    outbox = Outbox(store, [phone], now=clock)
    await ask(outbox, *range(60 + PACE.digest_alerts))
    await deliver(outbox)
    await outbox.contact(Contact("talk", "late@example.org", "late@example.org", "a job"), [])
    clock.ahead = PACE.digest_every + MOMENT
    await deliver(outbox)
    assert phone.texts[60].splitlines()[1].startswith("New contact: late@example.org · Wants: a job · C-")
