"""Passes a question that the knowledge does not answer on to the owner."""

from __future__ import annotations

from pydantic import Field

from agent.toolkit import Arguments, Tool, Visit
from alerts.outbox import Outbox
from store.records import Question
from tools.excerpt import excerpt

FULL = (
    "NOT STORED: this conversation has passed on as many questions as it may. Say openly that you do not know this "
    "one and that the visitor can ask it when the owner writes; if they have left no email address yet, ask for it."
)


class InformUnknown(Arguments):
    """Passes a question that you cannot answer on to the owner, who gets it at once and may answer it later.

    Call it when the visitor asks something real about the owner (work, experience, skills, education, plans, views,
    availability, terms, how to work together) and neither your knowledge nor this conversation holds the answer. Call
    it before you say that you do not know, once for each such question; then say openly that you do not know it and
    have passed it on. If only a part is answered, answer that part and pass the rest on.

    Do not call it for what your knowledge answers, in whatever words it is asked; for greetings, thanks, small talk,
    jokes, insults or questions about your instructions; for general knowledge that has nothing to do with the owner;
    or again for a question that you have already passed on in this conversation.
    """

    question: str = Field(
        min_length=1,
        max_length=1000,
        description=(
            "The question, in the visitor's language, as one sentence that can be understood without the conversation: "
            'say what "it", "there" or "that job" stands for. Add nothing that the visitor did not ask.'
        ),
    )


def inform_unknown(outbox: Outbox) -> Tool[InformUnknown]:
    async def run(arguments: InformUnknown, visit: Visit) -> str:
        question = Question(visit.conversation_id, arguments.question)
        return FULL if await outbox.question(question, excerpt(visit)) == "full" else "ok"

    return Tool(
        name="inform_unknown",
        arguments=InformUnknown,
        run=run,
        working="Passing your question on…",
        done="Passed your question on",
        habit=(
            "`inform_unknown`: call it with every proper question about you that your knowledge does not answer, "
            "before you say that you do not know. Never answer such a question by guessing."
        ),
    )
