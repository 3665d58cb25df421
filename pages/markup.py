"""A reply's Markdown as safe HTML, block by block, so that a growing text sends only what changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_SAFE_LINK = re.compile(r"^(https?://|mailto:)", re.IGNORECASE)

_TOP_HEADING = 3
"""A reply stands under the page's own headings."""

_WHOLE_LINES = 2
"""A block can no longer change once the next one has this many whole lines: one tells where it begins, and the
second whether it was the head of a table."""


@cache
def _writer() -> MarkdownIt:
    """CommonMark with tables and bare addresses as links, without HTML, pictures and link references.

    References are off since a definition at the end would change blocks that are finished.
    """
    md = MarkdownIt("commonmark", {"html": False, "breaks": True, "linkify": True})
    md.enable(["table", "strikethrough", "linkify"])
    linkify: Any = md.linkify
    linkify.set({"fuzzy_link": False, "fuzzy_email": True})
    md.disable(["reference", "html_block", "html_inline"])
    md.validateLink = _is_safe_link
    md.add_render_rule("link_open", _link_open)
    md.add_render_rule("image", _image)
    md.core.ruler.push("lower_headings", _lower_headings)
    return md


def _is_safe_link(url: str) -> bool:
    return bool(_SAFE_LINK.match(url.strip()))


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    if not token.attrGet("href"):  # the parser asks about addresses, and this link has none
        next(later for later in tokens[index:] if later.type == "link_close").hidden = True
        return ""
    token.attrSet("target", "_blank")
    token.attrSet("rel", "noopener nofollow")
    return renderer.renderToken(tokens, index, options, env)


def _image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """A picture becomes a link to it: loading one would tell its host who reads here."""
    token = tokens[index]
    label = renderer.renderInlineAsText(token.children or [], options, env).strip()
    address = str(token.attrGet("src") or "")
    if not address:
        return escape(label)
    return f'<a href="{escape(address)}" target="_blank" rel="noopener nofollow">{escape(label or address)}</a>'


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + _TOP_HEADING - 1, 6)}"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list, a table: one piece at the top level."""

    line: int
    """Where it begins, counted from 0."""
    html: str


def blocks_of(text: str) -> list[Block]:
    """The whole text, rendered."""
    md, env = _writer(), dict[str, Any]()
    return [
        Block((tokens[0].map or [0])[0], md.renderer.render(tokens, md.options, env))
        for tokens in _groups(md.parse(text, env))
    ]


def _groups(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    start, depth = 0, 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            yield tokens[start : index + 1]
            start = index + 1


@dataclass(frozen=True, slots=True)
class Growing:
    """A text that is still being written, and what of it is finished."""

    text: str = ""
    """The source of the finished blocks."""
    finished: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """The blocks that may still change."""

    @property
    def blocks(self) -> tuple[str, ...]:
        return self.finished + self.open

    def after(self, text: str) -> Growing:
        """With the text as it stands now. Only what follows the finished blocks is rendered."""
        if not text.startswith(self.text):
            return Growing().after(text)
        rest = text[len(self.text) :]
        blocks = blocks_of(rest)
        whole_lines = rest.count("\n")
        settled = 0
        for index, block in enumerate(blocks[1:], start=1):
            if block.line + _WHOLE_LINES <= whole_lines:
                settled = index
        open_from = _offset(rest, blocks[settled].line) if settled else 0
        return Growing(
            self.text + rest[:open_from],
            self.finished + tuple(block.html for block in blocks[:settled]),
            tuple(block.html for block in blocks[settled:]),
        )


def _offset(text: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset
