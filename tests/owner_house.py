"""What the tests of the owner's doings share: visitors who ask and leave contacts, and the owner's next message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agent.conversation import Reply, Step, Turn
from store.owner import Owner
from store.records import Answer, Contact, Question
from store.store import Store

T = TypeVar("T")
JANE = Contact("talk", "jane@example.org", "jane@example.org", "a job", "Jane")


async def did(store: Store, act: Callable[[Owner], T]) -> T:
    """What the owner's next message does."""
    results: list[T] = []
    update = await store.update_offset() or 1
    assert await store.handle_update(update, lambda owner: results.append(act(owner)))
    return results[-1]


async def ask(store: Store, question: str = "Do you ski?", talk: str = "talk") -> str:
    """Keeps a question and returns its reference."""
    references: list[str] = []

    def text_of(reference: str) -> str:
        references.append(reference)
        return reference

    assert await store.add_question(Question(talk, question), text_of) == "new"
    return references[-1]


async def leave(store: Store, contact: Contact = JANE) -> str:
    references: list[str] = []
    await store.add_contact(
        contact, lambda one: references.append(one) or one, lambda one: references.append(one) or one
    )
    return references[-1]


async def answer(store: Store, reference: str, text: str) -> Answer:
    def act(owner: Owner) -> Answer:
        target = owner.target_named(reference)
        assert target is not None
        return owner.answer(target, text)

    return await did(store, act)


async def forget(store: Store, reference: str) -> str | None:
    return await did(store, lambda owner: owner.forget(reference))


async def say(store: Store, message: str, reply: str = "I do not know.", talk: str = "talk") -> None:
    turn = Turn(message, (Step(Reply(reply)),))
    await store.close_turn(talk, await store.open_turn(talk, message), turn, "answered")
