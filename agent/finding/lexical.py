"""Words and questions in plain English: what a question is about, and what kind of thing would answer it."""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W_]+")
SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n")

_LIGHT = """
    a able about above after again all also am an and another any anybody anyone anything appear appeared appears
    are as at be because been before being below between both but by can could d did do does doing done down during
    each either else ever every everybody everyone everything few for from further get gets getting give given gives
    go goes going gone got had happen happened happens has have having he hello her here hers herself hi him himself
    his how i if in into is it its itself just kind know like ll lot lots m made make makes making many may me might
    mine more most much must my myself never no nobody none nor not nothing now of off often ok okay on once only or
    other our ours ourselves out over own please quite rather re really s same shall she should so some somebody
    someone something soon sort still such t take taken tell than thank thanks that the their theirs them themselves
    then there these they thing things think this those though through to together too took under until up upon us
    use used using ve very want was way ways we well went were what when where whether which while who whom whose
    why will with within without would yeah yes yet you your yours yourself yourselves
"""
LIGHT = frozenset(_LIGHT.split())
"""Words that say little of what a text is about."""

IRREGULAR = {
    form: forms.split()[0]
    for forms in """
    arise arose arisen|beat beaten|become became|begin began begun|bend bent|bet bets|bind bound|bite bit bitten
    bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought
    catch caught|choose chose chosen|come came|creep crept|deal dealt|die dying|dig dug|draw drew drawn|dream dreamt
    drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought
    flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven
    freeze froze frozen|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|lay laid|lead led
    lean leant|leap leapt|learn learnt|leave left|lend lent|lie lay lain lying|light lit|lose lost|mean meant|meet met
    pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold
    send sent|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk
    sit sat|sleep slept|slide slid|smell smelt|speak spoke spoken|spell spelt|spend spent|spin spun|spring sprang sprung
    stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung
    teach taught|tear tore torn|throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven
    weep wept|win won|wind wound|write wrote written|child children|man men|woman women|person people|foot feet
    tooth teeth|mouse mice|wife wives|life lives|half halves|good better best|bad worse worst|far further furthest
    """.replace("\n", "|").split("|")
    if forms.strip()
    for form in forms.split()[1:]
}
"""Forms that no stemmer brings together."""

MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
YEAR = r"(?:1\d|20)\d\d"
DATE = re.compile(rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? )?{MONTH}(?: \d{{1,2}}\b)?|\b{YEAR}s?\b")
COUNT = (
    r"(?:\d[\d,.]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|millions?|dozens?|half|both|once|twice|several"
    r"|no|none|never)"
)


def _kind(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


NUMBER = _kind(rf"\b{COUNT}\b")
MONEY = _kind(
    rf"[$€£¥]|\b(?:USD|EUR|GBP|CHF|free)\b|\b{COUNT}\W*(?:%|per ?cent|hours?|days?|pounds?|dollars?|euros?|francs?)"
)
LENGTH = _kind(rf"\b{COUNT}\W*(?:[mck]?m|ft|inch(?:es)?|feet|foot|yards?|miles?|(?:centi|kilo)?met(?:re|er)s?)\b")
WEIGHT = _kind(rf"\b{COUNT}\W*(?:kg|lbs?|kilo(?:gram)?s?|pounds?|stone|tons?|tonnes?|grams?)\b")
SPAN = _kind(
    rf"\b{COUNT}\W*(?:\w+ )?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|pages?|words?)\b"
    rf"|\b{YEAR}\b|\b(?:since|until|always|permanent)\b"
)
AGE = _kind(rf"\b(?:aged?|born|old|turned)\b|\b{YEAR}\b")
TIME = re.compile(
    rf"\b{YEAR}|\b{MONTH}\b|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"
    r"|\b(?i:ago|since|until|after|before|once|when|today|now|soon|tomorrow|yesterday|currently|notice|next|last)\b"
)
PLACE = re.compile(
    r"\b(?:in|at|to|from|near|around|across|outside|beside|of|on) (?:the |my |our |his |her |its )?"
    rf"(?!{MONTH})[^\W\d_a-z]|\b(?i:home|house|remote(?:ly)?|abroad|online|anywhere|everywhere|nowhere|here|page)\b"
)
ROLE = _kind(
    r"\b(?:(?:grand)?(?:father|mother|parent)s?|brothers?|sisters?|sons?|daughters?|husband|wife|partner|friends?"
    r"|teachers?|tutors?|colleagues?|manager|boss|team|clients?|customers?|myself|nobody|everyone|I am|I'm)\b"
)

OPENING = r"^\W*(?:(?:and|so|but|or) )?(?:(?:in|at|on|by|since|until|from|with|to|for) )?"
KINDS = (
    (_kind(r"\bhow (?:tall|high|far|deep|wide)\b"), LENGTH),
    (_kind(r"\bhow heavy\b|\bhow much .* weigh\b"), WEIGHT),
    (_kind(r"\bhow long\b"), SPAN),
    (_kind(r"\bhow old\b"), AGE),
    (_kind(r"\bhow much\b"), MONEY),
    (_kind(rf"{OPENING}(?:when|(?:what|which) (?:year|month|date|day))\b"), TIME),
    (_kind(rf"{OPENING}where\b"), PLACE),
)
"""What is asked for, and what a text holds that tells it. Numbers of things and persons need more, see below."""

ASKED_KIND = _kind(
    r"\bhow (?:tall|high|far|deep|wide|heavy|long|old|big|large)\b|\b(?:what|which) (?:year|month|date|day)\b"
)
HOW_MANY = _kind(r"\bhow (?:many|big|large)\b")
WHO = _kind(rf"{OPENING}(?:who|whom|whose)\b")
NAME = re.compile(r"[^\W\d_a-z][^\W_]+(?:['’-][^\W_]+)*(?: [^\W\d_a-z][^\W_]*(?:['’-][^\W_]+)*)*")
BEFORE_THINGS = _kind(r"(?:\b(?:in|at|from|near|to|of|on|the|a|an)|['’]s) $")
"""What stands in front of places and things rather than persons."""


def words(text: str) -> list[str]:
    """The words that say what a text is about, in small letters, each once."""
    small = text.lower().replace("’s", "").replace("'s", "")
    found: list[str] = [word for word in WORD.findall(small) if word not in LIGHT and len(word) > 1]
    return list(dict.fromkeys(IRREGULAR.get(word, word) for word in found))


def subject(question: str) -> str:
    """A question without the words that say what kind of thing is asked for: "how big", "which year"."""
    return ASKED_KIND.sub(" ", question)


def plain(text: str) -> str:
    """A text without case and punctuation, to tell whether two are the same."""
    return " ".join(WORD.findall(text.lower()))


def sentences(text: str) -> list[str]:
    """Sentences, list items and parts between colons or semicolons."""
    parts: list[str] = re.sub(SENTENCE_END, "\n", text).split("\n")
    return [part.strip() for part in parts if WORD.search(part)]


def lacks(question: str, text: str) -> bool:
    """Whether a text holds nothing of the kind that is asked for: no year for a when, no name for a who."""
    if HOW_MANY.search(question):
        return not NUMBER.search(DATE.sub(" ", text))
    if WHO.search(question):
        return not (ROLE.search(text) or _names(question, text))
    for asked, kind in KINDS:
        if asked.search(question):
            return not kind.search(text)
    return False


def _names(question: str, text: str) -> bool:
    """Whether a text names someone whom the question does not name."""
    asked = set(words(question))
    for sentence in sentences(text):
        for name in NAME.finditer(sentence):
            first_word = name.start() == 0 and " " not in name.group()
            before = sentence[max(0, name.start() - 6) : name.start()]
            of_a_thing = BEFORE_THINGS.search(before) or DATE.match(name.group())
            parts = words(name.group())
            if parts and not (first_word or of_a_thing or asked.intersection(parts)):
                return True
    return False
