"""The questions that visitors always ask, and which of them a person's files leave open.

By words that such answers have, then by nearness in meaning, both in English. The keyless model's own search is too
strict for it: it must not quote what does not answer, and sees one in three of the answers in a CV.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from agent.finding.encoder import Encode, load_encoder
from agent.finding.lexical import sentences
from agent.knowledge.values import Passage

log = logging.getLogger(__name__)

YEAR = r"(?:19|20)\d\d"
NUMBER = (
    r"(?:\d+\+?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|many|several"
    r"|a few|some)"
)
TRADE = (
    r"\w*(?:engineer|developer|designer|manager|director|founder|consultant|teacher|nurse|scientist|researcher|analyst"
    r"|architect|writer|editor|lawyer|accountant|student|owner|professor|artist|physician|doctor|mathematician|chef"
    r"|programmer|administrator|specialist|technician|producer|photographer|journalist|translator|therapist|officer"
    r"|assistant|coach|trainer|freelancer|entrepreneur|economist|psychologist|chemist|physicist|biologist)s?"
)
WORKS = r"(?:run|lead|manage|work|teach|head|direct|own|design|build|develop|consult|freelance|coach|practise|practice)"
LANGUAGES = (
    r"(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Swedish|Norwegian|Danish|Finnish|Icelandic|Polish|Czech"
    r"|Slovak|Sloven\w+|Croatian|Serbian|Bosnian|Macedonian|Bulgarian|Romanian|Hungarian|Greek|Turkish|Albanian"
    r"|Russian|Ukrainian|Belarusian|Lithuanian|Latvian|Estonian|Arabic|Hebrew|Persian|Farsi|Urdu|Hindi|Bengali|Punjabi"
    r"|Tamil|Telugu|Marathi|Gujarati|Mandarin|Chinese|Cantonese|Japanese|Korean|Vietnamese|Thai|Indonesian|Malay"
    r"|Tagalog|Filipino|Swahili|Yoruba|Igbo|Hausa|Amharic|Zulu|Xhosa|Afrikaans|Catalan|Basque|Galician|Irish|Welsh)"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What visitors ask, and how an answer is recognised."""

    asked: str
    hint: str
    """What to write."""
    answers: re.Pattern[str]
    """Some part of a passage, which stands behind its headings."""


def _ask(asked: str, hint: str, *answers: str) -> Question:
    return Question(asked, hint, re.compile("|".join(answers), re.MULTILINE))


QUESTIONS = (
    _ask(
        "What do you do now?",
        "your present role, where, and since when, as in `I lead the data team at Northwind.`",
        rf"(?i:\bI(?:['’]m| am)\b[^.\n]{{0,60}}\b{TRADE}\b)",
        rf"(?i:\bI(?: \w+ly)? {WORKS}\b|\bI(?:['’]m| am) (?:\w+ )?(?:working|employed|self-employed|retired)\b)",
        rf"(?i:(?:\bat\b|\bas\b|\b{TRADE}\b)[^.\n]{{0,60}}\bsince (?:\w+ )?{YEAR}\b)",
        rf"(?i:\b(?:freelance|senior|staff|lead|chief|principal|junior|independent|head)\b[^.\n]{{0,25}}\b{TRADE}\b)",
        rf"(?i:\bI head up\b|{YEAR}\W{{1,4}}(?:present|now|today|to date|current)\b)",
        r"(?i:\bcurrent(?:ly)?\b[^.\n]{0,30}\b(?:role|job|position|work\w*|employ\w+|lead\w*|at)\b|what do you do\b)",
    ),
    _ask(
        "How many years of experience do you have?",
        "a number, as in `I have worked with data for twelve years.`",
        rf"(?i:\bI\b[^.\n]{{0,90}}\b{NUMBER}(?: or \w+)?(?: and a half)? years?\b)",
        rf"(?i:\b{NUMBER} years?(?:['’])? (?:of|in|as|experience)\b|\b{NUMBER} years? \d+ months?\b|\bdecades?\b)",
        rf"(?i:\byears of experience\b|\bI\b[^.\n]{{0,80}}\bsince (?:\w+ )?{YEAR}\b)",
        rf"(?is:{YEAR}\s*[-–—]\s*(?:\w+ )?(?:{YEAR}|present|now|today).*{YEAR}\s*[-–—]\s*(?:\w+ )?{YEAR})",
    ),
    _ask(
        "What are your main skills?",
        "the three to ten that you want to be asked about",
        r"(?i:\bskills?\b|\btool ?(?:box|kit)\b|\bstack\b|\bexpertise\b|\bproficien\w+|\bgood at\b)",
        r"(?i:\bspeciali[sz]e\w*\b|\bexperienced (?:in|with)\b|\bexperts? (?:in|at|on)\b|\bcompetenc\w+)",
        r"(?i:\bstrengths?\b|\btechnologies\b|\bask me about\b|\bwhat I (?:bring|offer|do best)\b|\bknow-how\b)",
    ),
    _ask(
        "What is your education?",
        "degrees, schools and years, or how else you learned it",
        r"(?i:\bdegrees?\b|\bdiploma\b|\bgraduat\w+|\buniversity\b|\bcollege\b|\bacademy\b|\bpolytechnic\b|\beducat\w+)",
        r"(?i:\bbachelor\b|\bmaster['’]?s\b|\bdoctorate\b|\bI studied\b|\bapprentice\w*|\bself-taught\b|\bbootcamp\b)",
        r"(?i:\btraining$|\bhigh school\b|\bcourses? (?:in|at)\b|\bcertifi\w+)",
        r"\b(?:B\.?Sc|M\.?Sc|Ph\.?D|MBA|B\.?A|M\.?A|B\.?Eng|M\.?Eng|LL\.?[BM])\b\.?|\bSchool of [A-Z]",
    ),
    _ask(
        "Where are you based?",
        "the place, and whether you work remotely or would move",
        r"(?i:\bI(?:['’]m| am)? (?:\w+ )?(?:live|based|located|reside|settled)\b|\bbased (?:in|on|near|at)\b)",
        r"(?i:\bI live\b|\bmy home\b|\bhome (?:is|base)\b|\bhomes?$|\blocation\b|\bremote(?:ly)?\b|\baddress:)",
        r"\b[Mm]y (?:desk|office|studio|workshop|practice|flat|house|place) is (?:in|on|near) ",
        rf"\bI (?i:{WORKS}|live|lived)\b[^.\n]{{0,60}}\b(?:in|from|near|around) [A-Z]",
        r"(?:^|› )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,2}, [A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,3}$",
    ),
    _ask(
        "Which languages do you speak?",
        "each with how well, as in `English (native), German (fluent).`",
        rf"(?:\b[Ll]anguages?\b|\b[Ss]peak\w*\b|\b[Ff]luen\w+|\b[Nn]ative\b|\b[Mm]other tongue\b)[^.]{{0,80}}"
        rf"{LANGUAGES}\b",
        rf"\b{LANGUAGES}\b[^.\n]{{0,30}}(?:\b[Ff]luen\w+|\b[Nn]ative\b|\b[ABC][12]\b|\bmother tongue\b)",
        rf"\b{LANGUAGES}\b[^.\n]{{0,40}}\b{LANGUAGES}\b",
    ),
    _ask(
        "Are you available for work?",
        "whether, from when and for what, or that you are not",
        r"(?i:\bI(?:['’]m| am)(?: \w+){0,2} available\b|\bavailability\b)",
        r"(?i:\bavailable (?:for|from|immediately|now|as of)\b|\bhire me\b|\bfully booked\b|\bcan start\b)",
        r"(?i:\bopen to (?:work|offers|new|contract\w*|roles?|freelanc\w+|opportunit\w+|relocat\w+|hear\w*)\b)",
        r"(?i:\bnotice period\b|\b(?:weeks?|months?)['’]? notice\b|\bfor hire\b)",
        r"(?i:\bfree (?:from|until|on|in|most|for|to start)\b|\bI (?:would|could|might|can) consider\b)",
        r"(?i:\bI\b[^.\n]{0,30}\b(?:take|taking) on\b)",
        r"(?i:\blooking for (?:an? )?(?:new )?(?:job|role|work|position|challenge))",
    ),
    _ask(
        "How can I get in touch?",
        "an address or a link, or that visitors can leave theirs in this chat",
        r"[\w.+-]+@[\w-]+\.\w+|https?://|\bwww\.|linkedin\.com",
        r"(?i:\b(?:get|keep|be) in touch\b|\b(?:contact|reach|e-?mail|message|call|ring|drop|write to|write) me\b)",
        r"(?i:\b(?:phone|tel|mobile|ring|call)\b\D{0,9}\d{3}|\bway to (?:reach )?me\b)",
        r"(?i:\bleave (?:me )?your (?:e-?mail|address)|\b\w+\.(?:com|org|net|io|dev)/\w)",
        r"(?i:\b(?:tell|ask|use) this (?:page|chat)\b|\bP\.?O\.? box\b)",
    ),
)

NEAR = 0.36
"""Of meanings: beneath it a passage is about something else. Of what nobody had answered, 1 of 19 was nearer."""
MAX_PARTS = 1000
"""Sentences that are looked at for meaning: what a person says of these questions stands early."""

COMMON = re.compile(r"\b(?:the|and|of|to|for|with|from)\b", re.IGNORECASE)


def left_open(passages: Sequence[Passage], load: Callable[[], Encode] = load_encoder) -> list[Question]:
    """The questions that no passage answers, neither in the words that answers have nor near them in meaning."""
    texts = [f"{passage.heading}\n{passage.text}" for passage in passages]
    silent = [question for question in QUESTIONS if not any(map(question.answers.search, texts))]
    if not silent or not passages:
        return silent
    try:
        near = _nearness(passages, [question.asked for question in silent], load())
    except Exception as error:
        # Packages with compiled parts fail in many ways on a strange machine.
        log.warning("Looking for answers by words alone: no encoder (%s)", type(error).__name__)
        return silent
    return [question for question, nearness in zip(silent, near, strict=True) if nearness < NEAR]


def _nearness(passages: Sequence[Passage], asked: list[str], encode: Encode) -> list[float]:
    """Of the nearest sentence to each question."""
    parts = (
        f"{passage.heading.rpartition(' › ')[2]}. {sentence}"
        for passage in passages
        for sentence in (passage.text, *sentences(passage.text))
    )
    return (encode(list(islice(parts, MAX_PARTS))) @ encode(asked).T).max(axis=0).tolist()


def is_english(passages: Sequence[Passage]) -> bool:
    """Whether answers can be recognised at all. A list of names and dates passes for English."""
    words = re.findall(r"[^\W\d_]+", " ".join(passage.text for passage in passages)[:100_000])
    return len(words) < 60 or len(COMMON.findall(" ".join(words))) > 0.03 * len(words)
