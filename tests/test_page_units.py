"""The page's parts without a browser: Markdown and batches."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pages.batches import in_batches
from pages.markup import Growing, blocks_of


@pytest.fixture(autouse=True, scope="module")
def quiet_parser() -> None:
    """The Markdown parser logs every rule it tries, which takes longer than all these tests."""
    logging.getLogger("markdown_it").setLevel(logging.INFO)


# --- Markdown ---

BITS = (
    "a¦b c¦# ¦#¦- ¦1. ¦1) ¦2. ¦> ¦```¦`¦**¦*¦~~¦|¦|-|¦---¦===¦  ¦    ¦\t¦\n¦\n\n¦[x](http://y)¦![i](http://z/p.png)¦"
    "[r]: http://q¦<b>¦&amp;¦\\¦é¦https://e.test"
)
MARKDOWN = st.lists(st.sampled_from(BITS.split("¦")), max_size=40).map("".join)


def html_of(text: str) -> list[str]:
    return [block.html for block in blocks_of(text)]


@settings(deadline=None)
@given(MARKDOWN, st.lists(st.integers(min_value=0, max_value=200), max_size=30))
def test_a_text_that_grows_in_any_steps_is_rendered_as_the_whole(text: str, cuts: list[int]) -> None:
    growing = Growing()
    for cut in sorted(cuts):
        before = growing.finished
        growing = growing.after(text[:cut])
        assert growing.finished[: len(before)] == before
    assert list(growing.after(text).blocks) == html_of(text)


@settings(deadline=None)
@given(MARKDOWN)
@example("a\n#b")  # a heading, until the next letter comes
@example("a\nb | c\n--|--d")  # a table, until the next letter comes
@example("[a]\n\nb\n\nc\n\n[a]: http://d")  # a definition of what was written long before
def test_every_step_shows_what_the_text_so_far_says(text: str) -> None:
    growing = Growing()
    for end in range(len(text) + 1):
        growing = growing.after(text[:end])
        assert list(growing.blocks) == html_of(text[:end])


def test_of_a_long_reply_only_the_end_is_rendered_again() -> None:
    text = "".join(f"Paragraph {number}.\n\n" for number in range(50))
    growing = Growing().after(text)
    assert len(growing.finished) >= 48


def test_a_text_that_was_taken_back_begins_anew() -> None:
    growing = Growing().after("One.\n\nTwo.\n\nThree.\n\nFour.\n\n")
    assert growing.finished
    assert list(growing.after("Other.").blocks) == html_of("Other.")


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


HARMLESS = set(
    re.findall(r"\w+", "p br em strong s a code pre ul ol li blockquote hr h3 h4 h5 h6 table thead tbody tr th td")
)
EVIL_BITS = (
    "<script>¦</script>¦<img src=x onerror=a>¦<iframe>¦<svg onload=a>¦<!--¦]]>¦<¦>¦[a](¦![a](¦)¦\"¦'¦`¦\n¦javascript:a¦"
    "JaVaScRiPt:¦vbscript:¦&#106;avascript:¦data:text/html,a¦ onclick=a ¦http://a/¦<http://b>¦[x]: javascript:a\n¦"
    "mailto:a@b.co¦//evil¦/local"
)
EVIL = st.lists(st.sampled_from(EVIL_BITS.split("¦")), max_size=15).map("".join)


@settings(deadline=None)
@given(EVIL | MARKDOWN)
def test_nothing_but_harmless_tags_and_links_comes_out(text: str) -> None:
    for tag, attributes in Tags("".join(html_of(text))).found:
        assert tag in HARMLESS
        assert set(attributes) <= {"href", "title", "target", "rel", "start", "class", "style"}
        assert not attributes.get("style") or str(attributes["style"]).startswith("text-align:")
        if tag == "a":
            assert str(attributes["href"]).lower().startswith(("http://", "https://", "mailto:"))
            assert (attributes["target"], attributes["rel"]) == ("_blank", "noopener nofollow")


def test_a_picture_becomes_a_link_to_it() -> None:
    assert html_of('![a "map"](https://e.test/m.png)') == [
        '<p><a href="https://e.test/m.png" target="_blank" rel="noopener nofollow">a &quot;map&quot;</a></p>\n'
    ]


def test_a_link_to_nowhere_is_text() -> None:
    assert html_of("[a]() [b](javascript:c) ![d]()") == ["<p>a [b](javascript:c) d</p>\n"]


def test_a_bare_address_becomes_a_link_and_a_bare_name_does_not() -> None:
    assert 'href="https://e.test/a"' in html_of("See https://e.test/a.")[0]
    assert "<a" not in html_of("Read readme.md or e.com")[0]


def test_a_reply_stands_under_the_headings_of_the_page() -> None:
    assert html_of("# One\n\n###### Six") == ["<h3>One</h3>\n", "<h6>Six</h6>\n"]


# --- Batches ---


class Source:
    """Yields what it is given, when it is given it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self.closed = asyncio.Event()

    def give(self, *items: str | Exception | None) -> None:
        for item in items:
            self.queue.put_nowait(item)

    async def read(self) -> AsyncGenerator[str]:
        try:
            while (item := await self.queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed.set()


FOR_EVER = 1000.0


async def test_the_first_piece_is_passed_on_at_once() -> None:
    source = Source()
    batches = in_batches(source.read(), FOR_EVER)
    source.give("a")
    assert await anext(batches) == ["a"]
    await batches.aclose()


async def test_what_comes_during_a_pause_is_one_batch_and_the_end_ends_the_pause() -> None:
    source = Source()
    batches = in_batches(source.read(), FOR_EVER)
    source.give("a")
    assert await anext(batches) == ["a"]
    source.give("b")
    assert await anext(batches) == ["b"]
    source.give("c", "d", None)
    assert [batch async for batch in batches] == [["c", "d"]]


async def test_a_silence_gives_an_empty_batch_and_loses_nothing() -> None:
    source = Source()
    batches = in_batches(source.read(), 0, silence_s=0.01)
    assert [await anext(batches), await anext(batches)] == [[], []]
    source.give("a")
    while not (batch := await anext(batches)):
        pass
    assert batch == ["a"]
    assert await anext(batches) == []
    await batches.aclose()
    assert source.closed.is_set()


async def test_a_source_without_anything_gives_no_batch() -> None:
    source = Source()
    source.give(None)
    assert [batch async for batch in in_batches(source.read(), FOR_EVER)] == []


async def test_whoever_leaves_closes_the_source() -> None:
    source = Source()
    batches = in_batches(source.read(), FOR_EVER)
    source.give("a")
    await anext(batches)
    await batches.aclose()
    assert source.closed.is_set()


async def test_a_listener_that_is_cancelled_closes_the_source() -> None:
    source = Source()
    heard = asyncio.Event()

    async def listen() -> None:
        async for _ in in_batches(source.read(), 0):
            heard.set()

    source.give("a")
    task = asyncio.create_task(listen())
    await heard.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.wait_for(source.closed.wait(), 5)
    assert task.cancelled()


async def test_a_fault_of_the_source_comes_after_what_it_gave() -> None:
    source = Source()
    source.give("a", ValueError("broken"))
    batches = in_batches(source.read(), FOR_EVER)
    assert await anext(batches) == ["a"]
    with pytest.raises(ValueError, match="broken"):
        await anext(batches)
