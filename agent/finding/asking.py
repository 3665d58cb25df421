"""What a visitor's message asks of the index: its words, and those of before where it follows up."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.finding.lexical import IRREGULAR, WORD, words
from agent.finding.search import asked_in

MAX_TERMS = 24
MAX_CONTEXT_CHARS = 2000
"""Of what was said before, the end."""
FEW = 2
"""A question of so few words that say something may follow up on what was said before."""

SINGLE = re.compile(r"\b[B-HJ-Z]\b")
"""Letters that are names: "do you know R?"."""
UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
"""Scripts without spaces between words: each of their signs is a word to the index."""

FORMS: dict[str, tuple[str, ...]] = {
    base: (base, *(form for form, its_base in IRREGULAR.items() if its_base == base))
    for base in set(IRREGULAR.values())
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Terms as the index takes them; a term is one word, or several that stand side by side."""

    terms: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Of what was said before; none where the question stands alone."""
    heading: str = ""
    """All words of a question that has none that say something: it may be a heading."""


def read_question(question: str, context: str = "") -> Asked:
    asked = asked_in(question)
    terms = terms_of(asked)
    before = tuple(term for term in terms_of(context[-MAX_CONTEXT_CHARS:]) if term not in terms)
    heading = "" if terms else " ".join(WORD.findall(asked))
    return Asked(terms, before if len(terms) <= FEW else (), heading)


def text_to_embed(question: str, context: str = "") -> str:
    """A question as it should be understood: behind what was said before where it follows up."""
    asked = asked_in(question)
    if len(terms_of(asked)) > FEW or not context.strip():
        return asked
    return f"{context[-MAX_CONTEXT_CHARS:].strip()}\n{asked}"


def terms_of(text: str) -> tuple[str, ...]:
    found = words(text) + [letter.lower() for letter in SINGLE.findall(text)]
    return tuple(dict.fromkeys(part for word in found for part in _parts(word)))[:MAX_TERMS]


def expression(terms: tuple[str, ...], *, beginnings: frozenset[str] = frozenset()) -> str:
    """Any of the terms, in FTS5's language; in quotes, where nothing but a quote means anything."""
    return " OR ".join(_quoted(form) + ("*" if term in beginnings else "") for term in terms for form in _forms(term))


def spaced(text: str) -> str:
    """A text as it is indexed."""
    return UNSPACED.sub(r" \1 ", text) if UNSPACED.search(text) else text


def _forms(word: str) -> tuple[str, ...]:
    """A word; of one that bends beyond what stems tell, all its forms."""
    stem = word.removesuffix("ing")
    likely = (word, word.removesuffix("s"), stem, f"{stem}e", stem[:-1])
    return next((FORMS[base] for base in likely if base in FORMS), (word,))


def _parts(word: str) -> list[str]:
    """A word; of an unspaced script, its pairs of signs."""
    if not UNSPACED.search(word):
        return [word]
    return [spaced(word[place : place + 2]).strip() for place in range(max(1, len(word) - 1))]


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
