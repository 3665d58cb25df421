"""Gradio's queue outlives sessions that it does not know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agent.loop import Replica
from agent.model import OpenAIModel
from agent.persona import Profile
from agent.reception import Reception
from agent.toolkit import Toolkit
from pages.page import chat_page
from store.store import Store


async def test_a_message_to_a_lost_session_does_not_end_the_queue(model: OpenAIModel, store: Store) -> None:
    reception = Reception(Replica(model, Toolkit(), "x"), store, max_replies=3, max_message_chars=50)
    page = chat_page(reception, Profile("Jo", "", ()), max_replies=3, on_feedback=store.set_feedback)
    queue: Any = page.blocks._queue  # pyright: ignore[reportPrivateUsage]
    queue.send_message(SimpleNamespace(session_hash="", alive=True, _id="x"), SimpleNamespace())
    assert not queue.stopped
