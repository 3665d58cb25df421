"""What of a request goes to what, in tokens: an estimate that errs on the safe side, since every model counts anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agent.conversation import Turn
from agent.toolkit import Toolkit

BYTES_PER_TOKEN = 3
"""English has about four bytes a token, Chinese about three."""
MESSAGE_TOKENS = 8
"""What a provider adds around each message."""
ROUND_TOKENS = 400
"""Room for one round of tools: calls, results, and the text beside them."""

KNOWLEDGE_SHARE = 0.6
"""Of the context, at most, for the files."""
CORE_SHARE = 1 / 2
"""Of that, where not all files fit: for what is known in every request."""
FOUND_SHARE = 0.06
"""Of the context, for what is found for one message."""
NEW_SHARE = 1 / 9
"""Of what a request holds already, for what is new in it: so much less of it can be read from a provider's cache."""
ANSWERS_SHARE = 0.1
"""Of the context, for what the owner has answered in person."""
HISTORY_SHARE = 0.1
"""Of the context, at least, for the conversation."""


def estimate_tokens(text: str) -> int:
    """How many tokens a text has at the most, by its bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def turn_tokens(turn: Turn) -> int:
    """How many tokens a turn takes in a request."""
    tokens = estimate_tokens(turn.message) + MESSAGE_TOKENS
    tokens += sum(estimate_tokens(one.label + one.text) + MESSAGE_TOKENS for one in turn.found)
    tokens += estimate_tokens(turn.aside) + MESSAGE_TOKENS if turn.aside else 0
    for step in turn.steps:
        tokens += estimate_tokens(step.reply.text) + MESSAGE_TOKENS
        tokens += sum(estimate_tokens(call.name + call.arguments) + MESSAGE_TOKENS for call in step.reply.calls)
        tokens += sum(estimate_tokens(result.content) + MESSAGE_TOKENS for result in step.results)
    return tokens


@dataclass(frozen=True, slots=True)
class Room:
    """How much a request holds."""

    context: int
    """What the model can read and write at once, in tokens."""
    taken: int
    """What the tools, their rounds and the reply take of it, whatever is talked about."""

    def for_files(self, rules: str) -> int:
        """Beside the rules; the conversation keeps its share."""
        left = self.context - self.taken - estimate_tokens(rules) - int(self.context * HISTORY_SHARE)
        return max(0, min(int(self.context * KNOWLEDGE_SHARE), left))

    def for_history(self, persona: str, message: str = "") -> int:
        """Beside the whole system message and what the visitor says now; below zero where that is too much."""
        return self.context - self.taken - estimate_tokens(persona) - estimate_tokens(message)

    @property
    def for_found(self) -> int:
        return int(self.context * FOUND_SHARE)

    def for_found_behind(self, before: int, said: int) -> int:
        """Where the request before this one had so many tokens, and so many were said since."""
        return max(0, min(self.for_found, int(before * NEW_SHARE) - said))

    @property
    def for_answers(self) -> int:
        return int(self.context * ANSWERS_SHARE)


def room_for(toolkit: Toolkit, context_tokens: int, max_output_tokens: int, max_turns: int) -> Room:
    """What is left beside the tools, a reply, and as many rounds as there may be."""
    schemas: Sequence[object] = toolkit.schemas
    tools = sum(estimate_tokens(json.dumps(schema)) for schema in schemas)
    return Room(context_tokens, tools + max_output_tokens + ROUND_TOKENS * max_turns)
