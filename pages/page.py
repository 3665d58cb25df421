"""The chat page: what Gradio carries between the browser and the talk, and what is laid out around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import gradio as gr
from gradio.themes import Base
from starlette.routing import Route

from agent.answers import Answers
from agent.persona import Profile
from agent.reception import Reception
from pages.documents import Document, document_of
from pages.line import Line
from pages.news import IsClosed, Newest, news_routes
from pages.posts import Calls, Function
from pages.sources import PassagesOf, Sources, nothing
from pages.talk import OnFeedback, Talk


@dataclass(frozen=True, slots=True)
class Page:
    """The page, ready to be served."""

    blocks: gr.Blocks
    document: Document
    """What the served HTML says besides Gradio's own, and the files it names."""
    theme: Base
    line: Line
    """Where messages wait."""
    calls: Calls
    """What browsers and callers may post."""
    news: list[Route]
    """Where the page asks whether there is news."""

    @property
    def routes(self) -> list[Route]:
        """Of everything that is served beside Gradio."""
        return [*self.document.routes, *self.news]


def chat_page(
    reception: Reception,
    profile: Profile,
    *,
    max_replies: int,
    max_message_chars: int,
    on_feedback: OnFeedback,
    newest: Newest,
    is_closed: IsClosed,
    passages_of: PassagesOf = nothing,
    answers: Answers | None = None,
    trusted_proxies: int = 0,
) -> Page:
    """The chat page of a replica.

    The page's script (chat.js) draws the conversation and owns everything one sees. Gradio's parts are its
    wire: fields it writes, buttons it presses, and a button whose label is what the server says. They stay
    off the screen, since gr.HTML and gr.Chatbot either need `unsafe-eval` or send the past with each piece.

    Args:
        reception: answers, and keeps what was said.
        profile: who the page is about.
        max_replies: replies at once, page and API together.
        max_message_chars: length of a message, in characters.
        on_feedback: told when a visitor puts a thumb on a reply.
        newest: the id of the newest words that the owner wrote in a conversation, 0 for none: asked every few seconds.
        is_closed: whether the owner has closed the chat for a while.
        passages_of: what stands in the files behind a label of a reply's sources.
        answers: what the owner has answered in person, which may be a source as well.
        trusted_proxies: how many `X-Forwarded-For` entries from the right to believe.
    """
    talk = Talk(reception, on_feedback, trusted_proxies, Sources(passages_of, answers))
    document = document_of(profile, max_message_chars)
    with gr.Blocks(title=document.title, analytics_enabled=False, fill_width=True) as blocks:
        with gr.Column(elem_id="page"), gr.Row(elem_id="composer"):
            gr.Textbox(
                label="Message",
                show_label=False,
                placeholder=f"Ask {profile.name}’s replica…",
                lines=1,
                max_lines=8,
                interactive=True,
                container=False,
                elem_id="message",
            )
            gr.Button("Send", elem_id="send", variant="primary")
            stop = gr.Button("Stop", elem_id="stop")
        with gr.Column(elem_id="wire"):
            said = _field("said")
            conversation = _field("conversation")
            thumb = _field("thumb")
            told = gr.Button("", elem_id="told")
            ask, again = gr.Button("ask", elem_id="ask"), gr.Button("again", elem_id="again")
            load, rate = gr.Button("load", elem_id="load"), gr.Button("rate", elem_id="rate")

        # One id: page and API wait in one line, and at most `max_replies` of them are answered at once.
        answering: dict[str, Any] = {"concurrency_id": "chat", "concurrency_limit": max_replies}
        # Values arrive as they were posted: Gradio would make text of anything.
        raw: dict[str, Any] = {"preprocess": False, "api_visibility": "undocumented"}
        shown: dict[str, Any] = {"show_progress_on": conversation, "trigger_mode": "multiple", **raw}
        quick: dict[str, Any] = {"queue": False, "show_progress": "hidden", **raw}
        asked = ask.click(talk.ask, [said, conversation], told, api_name="ask", **answering, **shown)
        retried = again.click(talk.again, conversation, told, api_name="again", **answering, **shown)
        stop.click(None, cancels=[asked, retried], **quick)
        load.click(talk.load, conversation, told, api_name="load", **quick)
        rate.click(talk.rate, [thumb, conversation], api_name="rate", **quick)
        cast(Any, gr).api(talk.chat, api_name="chat", **answering)
    blocks.queue(api_open=False)
    line = cast(Any, blocks)._queue = Line(blocks, max_replies, trusted_proxies)
    calls = Calls(_functions(blocks), max_message_chars)
    return Page(blocks, document, _theme(), line, calls, news_routes(talk, newest, is_closed))


def _functions(blocks: Any) -> tuple[Function, ...]:
    """What the page's events and the API can do on the server."""
    functions = ((number, fn) for number, fn in blocks.fns.items() if not fn.cancels)
    return tuple(Function(number, str(fn.api_name), len(fn.inputs)) for number, fn in functions)


def _field(name: str) -> gr.Textbox:
    """A field for the script alone. One line makes it an `<input>`: the page has one `textarea`, the message box."""
    return gr.Textbox(label=name, lines=1, max_lines=1, interactive=True, elem_id=name)


def _theme() -> Base:
    """System fonts, so that no font is fetched from anywhere; the colours behind the page before it is drawn."""
    theme: Any = Base(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    return theme.set(
        body_background_fill="#faf9f6",
        body_background_fill_dark="#161513",
        body_text_color="#23211d",
        body_text_color_dark="#ece9e2",
    )
