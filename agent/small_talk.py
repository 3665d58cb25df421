"""What kind of thing a visitor's message is: small talk, a wish to get in touch, or a question."""

from __future__ import annotations

import re

from agent.finding.lexical import words

_SMALL_TALK = {
    "greeting": r"(hi|hello|hey|hiya|good (morning|day|afternoon|evening)|greetings|hallo|bonjour|hola)( there| \w+)?",
    "thanks": (
        r"((ok(ay)?|great|perfect|cool|wonderful) )?(many )?(thanks|thank you|thx|cheers|ta)"
        r"( (so|very) much| a lot| again)?|ok(ay)?|great|perfect|cool|wonderful|nice|👍+|🙏+"
    ),
    "farewell": r"(good ?bye|bye( bye)?|see you( later| soon)?|have a (nice|good) (day|one|evening))",
    "who": (
        r"(and )?(who|what) (are|r) (you|u)( exactly| really)?|introduce yourself|(please )?tell me about yourself|"
        r"(are you|am i (talking|speaking|chatting) (to|with)) (an? |the )?"
        r"(real( person)?|human( being)?|person|bot|robot|machine|ai|chat ?bot)"
    ),
}


def small_talk(text: str) -> str:
    """Which kind of small talk the whole message is; empty when it says more."""
    return next((kind for kind, pattern in _SMALL_TALK.items() if re.fullmatch(pattern, bare(text))), "")


def bare(text: str) -> str:
    return re.sub(r"[^\w\s👍🙏]", "", text).strip().lower()


_CONTACT = re.compile(
    r"\b(get in touch|contact (you|me|details)|reach (you|out)|hire you|e-?mail (you|address)|call me|"
    r"(talk|speak|meet) (to|with) you|(book|schedule|set up) an? (call|meeting|interview))\b",
    re.IGNORECASE,
)


def wants_contact(text: str) -> bool:
    return bool(_CONTACT.search(text))


_ASKING = re.compile(
    r"^(and |so |but |please )?(who|what|when|where|why|how|which|whose|whom|is|are|was|were|am|do|does|did|have|has|"
    r"had|can|could|will|would|should|may|tell|describe|explain|list|give|name|show|any)\b",
    re.IGNORECASE,
)


def is_question(text: str) -> bool:
    """A proper question: it asks, and of something, unlike "And when was that?". No other is worth the owner's time."""
    long_enough = len(re.findall(r"[^\W\d_]{2,}", text)) >= 2
    return long_enough and bool(words(text)) and ("?" in text or bool(_ASKING.match(text.strip())))


def asks_for_facts(text: str) -> bool:
    """A question whose answer has to rest on something."""
    return is_question(text) and not small_talk(text) and not wants_contact(text)
