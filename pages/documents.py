"""The served HTML names the replica, and the page's own files: picture, style and script."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.persona import Profile
from agent.reception import TOO_LONG

log = logging.getLogger(__name__)

HERE = Path(__file__).parent

_GRADIOS_OWN = re.compile(
    r'<meta\s+(?:property="og:|name="twitter:)[^>]*>|<link\s+rel="manifest"[^>]*>|<meta\s+name="viewport"[^>]*>'
)
"""Previews that name Gradio, its app manifest, and a viewport without safe areas."""

SCRIPTS = ("chat.js", "box.js", "layout.js", "line.js", "news.js", "owner.js", "sources.js", "turn.js", "wire.js")

_PICTURES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
_PREVIEWED = {"image/png", "image/jpeg", "image/webp", "image/gif"}
"""Chat programs and networks draw no SVG in a link's preview."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page, kept in memory."""

    path: str
    """Where it is served."""
    content: bytes
    media_type: str

    @property
    def address(self) -> str:
        """Changes with the content, so that a browser may keep the file for good."""
        return f".{self.path}?v={hashlib.sha256(self.content).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Document:
    """What the page says about itself."""

    title: str
    description: str
    data: dict[str, Any]
    """What the script reads."""
    picture: File
    styles: tuple[File, ...]
    scripts: tuple[File, ...]
    """The first one is named in the page, and fetches the others."""

    @property
    def routes(self) -> list[Route]:
        icon = replace(self.picture, path="/favicon.ico")
        return [_route(file) for file in (self.picture, icon, *self.styles, *self.scripts)]

    def rewritten(self, html: str, origin: str) -> str:
        """Gradio's page with this document's head.

        Args:
            html: as Gradio renders it.
            origin: scheme and host that the visitor sees: previews need whole addresses.
        """
        return _GRADIOS_OWN.sub("", html).replace("<head>", f"<head>\n{self._head(origin)}", 1)

    def _head(self, origin: str) -> str:
        title, description = escape(self.title), escape(self.description)
        data = json.dumps(self.data).replace("<", "\\u003c")
        lines = [
            '<meta charset="utf-8">',
            f"<title>{title}</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover, '
            'interactive-widget=resizes-content">',
            f'<meta name="description" content="{description}">',
            f'<meta property="og:title" content="{title}">',
            f'<meta property="og:description" content="{description}">',
            '<meta property="og:type" content="profile">',
            '<meta name="twitter:card" content="summary">',
            f'<meta name="twitter:title" content="{title}">',
            f'<meta name="twitter:description" content="{description}">',
            f'<link rel="icon" href="{self.picture.address}" type="{self.picture.media_type}">',
            *(f'<link rel="stylesheet" href="{style.address}">' for style in self.styles),
            f'<script type="application/json" id="replica">{data}</script>',
            f'<script type="module" src="{self.scripts[0].address}"></script>',
        ]
        if self.picture.media_type in _PREVIEWED:
            image = escape(f"{origin}{self.picture.address[1:]}")
            lines += [f'<meta property="og:image" content="{image}">', f'<meta name="twitter:image" content="{image}">']
        return "\n".join(lines)


def document_of(profile: Profile, max_message_chars: int = 4000) -> Document:
    """What the page says about the person, and how long a message may be."""
    title = f"{profile.name} · digital replica"
    about = f"{profile.line.rstrip('.')}. " if profile.line else ""
    picture = _picture_of(profile)
    return Document(
        title,
        f"{about}Talk with the digital replica of {profile.name}.",
        {
            "name": profile.name,
            "line": profile.line,
            "questions": list(profile.questions),
            "picture": picture.address,
            "longest": max_message_chars,
            "too_long": TOO_LONG.format(max_message_chars),
        },
        picture,
        tuple(_own(name, "text/css") for name in ("chat.css", "owner.css")),
        tuple(_own(name, "text/javascript") for name in SCRIPTS),
    )


def _own(name: str, media_type: str) -> File:
    return File(f"/{name}", (HERE / name).read_bytes(), f"{media_type}; charset=utf-8")


def _picture_of(profile: Profile) -> File:
    media_type = _PICTURES.get(profile.picture.suffix.lower()) if profile.picture else None
    if profile.picture and media_type:
        try:
            return File("/picture", profile.picture.read_bytes(), media_type)
        except OSError as error:
            log.warning("The picture %s cannot be read (%s): initials are shown", profile.picture.name, error.strerror)
    return File("/picture", _initials(profile.initials).encode(), "image/svg+xml")


def _initials(initials: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96"><rect width="96" height="96" fill="#2f4b66"/>'
        '<text x="48" y="50" fill="#f6f2e9" font-family="Georgia, serif" font-size="38" text-anchor="middle" '
        f'dominant-baseline="central">{escape(initials)}</text></svg>'
    )


def _route(file: File) -> Route:
    version = file.address.partition("?v=")[2]

    async def send(request: Request) -> Response:
        named = request.query_params.get("v") == version
        headers = {"Cache-Control": "public, max-age=31536000, immutable" if named else "no-cache"} | _FILE_HEADERS
        return Response(file.content, media_type=file.media_type, headers=headers)

    return Route(file.path, send, methods=["GET"])


_FILE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
"""An owner's SVG is shown as an image; opened by itself, it may run nothing."""
