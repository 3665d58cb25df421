"""What a model is told beside a message: the files, the owner's answers, what was found, and what fits of before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from agent.answers import Answers, Book
from agent.conversation import Conversation, Passage
from agent.fitting import Fitting
from agent.library import Library
from agent.loop import Replica
from agent.room import estimate_tokens


@dataclass(frozen=True, slots=True)
class Brief:
    """What `respond` takes, for one message."""

    replica: Replica
    conversation: Conversation
    found: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class Briefing:
    """Prepares replies; each part may be missing.

    Args:
        library: the owner's files; None: the replica's persona stays as it is.
        answers: what the owner has answered in person.
        fitting: shortens conversations; None: they go whole.
    """

    library: Library | None = None
    answers: Answers | None = None
    fitting: Fitting | None = None
    quotes: bool = False
    """The model is the keyless one, which reads the question alone and searches by itself."""

    async def brief(self, replica: Replica, conversation_id: str, conversation: Conversation, message: str) -> Brief:
        """Prepares the reply to a message."""
        if self.quotes:
            return await self.brief_for_quotes(replica, conversation)
        persona, known = replica.persona, replica.known
        if self.library:
            persona, known = self.library.shelf.persona, self.library.shelf.known
        book = await self.answers.book() if self.answers else Book()
        replica = replace(replica, persona=f"{persona}{book.text}", known=known | book.labels)
        answered = await self.answers.found(book, message) if self.answers else ()
        if self.fitting:
            beside = self.library.for_found if self.library else 0
            beside += sum(estimate_tokens(one.text) for one in answered)
            conversation = await self.fitting.fit(replica, conversation_id, conversation, message, beside)
        found = await self.library.found(message, conversation) if self.library else ()
        sent = {one for turn in conversation.turns[conversation.summarised :] for one in turn.found}
        return Brief(replica, conversation, (*(one for one in answered if one not in sent), *found))

    async def brief_for_quotes(self, replica: Replica, conversation: Conversation) -> Brief:
        """For the keyless model: nothing goes along, and it may name whatever it finds."""
        labels = await asyncio.to_thread(self.library.shelf.labels) if self.library else replica.known
        book = await self.answers.book() if self.answers else Book()
        return Brief(replace(replica, known=labels | book.labels), conversation)
