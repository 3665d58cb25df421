"""Whatever the provider sends and whenever the visitor leaves, the history stays well formed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.conversation import Conversation, Draft
from agent.events import Progress, TurnFinished
from agent.loop import Replica, respond
from agent.model import open_provider
from tests.fakes.hands import Hands, turn_of
from tests.fakes.provider import Answer, Provider, calls, delta, says, serving

ANSWERS: st.SearchStrategy[Callable[[], Answer]] = st.sampled_from(
    [
        lambda: says("Hello."),
        lambda: says(""),
        lambda: says("Half", finish=None),
        lambda: calls(("note", '{"text": "tea"}')),
        lambda: calls(("note", '{"text": "tea"}'), ("nothing", "{}"), text="Well."),
        lambda: calls(("note", "{}"), ("burn", '{"text": "x"}')),
        lambda: calls(("note", "null")),
        lambda: Answer(status=500),
        lambda: Answer(status=400, body={"error": {"message": "no"}}),
        lambda: Answer([delta(content="So")], raw="data: {broken\n\n"),
        lambda: Answer(body={"id": None, "choices": None, "error": {"code": 429}}),
    ]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(ANSWERS, min_size=1, max_size=8), leave_after=st.integers(0, 12))
def test_whatever_the_provider_sends_and_whenever_the_visitor_leaves_the_next_request_is_well_formed(
    script: list[Callable[[], Answer]], leave_after: int
) -> None:
    async def visit() -> Provider:
        async with serving() as provider:
            provider.script = [answer() for answer in script]
            model = open_provider(
                "scripted", None, provider.base_url, max_output_tokens=100, timeout_s=5, max_retries=0
            )
            replica = Replica(model, Hands().toolkit, "You are Ada.")
            conversation = Conversation()
            for message in ("One", "Two"):
                progress, finished = Progress(Draft(message)), None
                events = respond(replica, conversation, message)
                count = 0
                async for event in events:
                    progress = progress.after(event)
                    finished = event.turn if isinstance(event, TurnFinished) else None
                    count += 1
                    if message == "One" and count > leave_after:
                        break
                await events.aclose()
                conversation = conversation.and_then(finished or progress.stopped())
            provider.script = [says("Bye.")]
            await turn_of(replica, "Three", conversation)
            await model.close()
            return provider

    provider = asyncio.run(visit())
    assert provider.refused == []
    assert provider.requests[-1]["messages"][-1] == {"role": "user", "content": "Three"}
