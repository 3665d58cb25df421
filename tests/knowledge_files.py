"""Writes the files that the tests of the knowledge read: PDF by hand, so that it is known what stands where."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

Piece = tuple[float, float, float, str]
"""From the left, from the bottom, the size of the letters, the text."""

LOCKED_AES = base64.b64decode(
    """
    JVBERi0xLjMKJeLjz9MKMSAwIG9iago8PAovVHlwZSAvQ2F0YWxvZwovUGFnZXMgMiAwIFIKPj4KZW5kb2JqCjIgMCBvYmoKPDwKL1R5cGUgL1Bh
    Z2VzCi9LaWRzIFsgMyAwIFIgXQovQ291bnQgMQo+PgplbmRvYmoKMyAwIG9iago8PAovVHlwZSAvUGFnZQovUGFyZW50IDIgMCBSCi9NZWRpYUJv
    eCBbIDAgMCA2MTIgNzkyIF0KL0NvbnRlbnRzIDQgMCBSCi9SZXNvdXJjZXMgPDwKL0ZvbnQgPDwKL0YxIDUgMCBSCj4+Cj4+Cj4+CmVuZG9iago0
    IDAgb2JqCjw8Ci9MZW5ndGggODAKPj4Kc3RyZWFtCn96lL8YDNoVMbZm8NRFvv5N4CFZ2d3/bz/dMci19Bi9IYDSGAU/pgqXVtUaevs1HEGRkxTI
    ln33A1H6kAYwRGWOpJn73QCCos/b16hplFgWCmVuZHN0cmVhbQplbmRvYmoKNSAwIG9iago8PAovVHlwZSAvRm9udAovU3VidHlwZSAvVHlwZTEK
    L0Jhc2VGb250IC9IZWx2ZXRpY2EKPj4KZW5kb2JqCjYgMCBvYmoKPDwKL1YgNQovUiA2Ci9MZW5ndGggMjU2Ci9QIDQyOTQ5NjcyOTIKL0ZpbHRl
    ciAvU3RhbmRhcmQKL08gPGRlYjNiYjIxMjQ3NTlhNGUyNTlhZmI0NjVhY2Y3N2NkYWQ3MzI1MmE1MjRmNDQ1ZGFhODcwZTVhODA1NDRmNDM5ZTcy
    MTU0NTk1NjQzMTdlMDUwMDk5ZjIwN2VmYzhhNT4KL1UgPDYxYzJkOTQyNGE3Mzc5MDhmN2ExM2Q3YWNmNzQzMjM2ZjY1ZjA3MjU5ZjQ3N2FlODhk
    NmJkNDI4NWNiNmY1NzBiNjEzYTNmOTBhZjJkMDUzOTU3NjBjN2M0YzU3ZTNjOD4KL0NGIDw8Ci9TdGRDRiA8PAovQXV0aEV2ZW50IC9Eb2NPcGVu
    Ci9DRk0gL0FFU1YzCi9MZW5ndGggMzIKPj4KPj4KL1N0bUYgL1N0ZENGCi9TdHJGIC9TdGRDRgovT0UgPDQ2Zjc4OTFlYmYyMWI3NDAzYWY4YjE0
    YTE4MjBhMjE2NThjNjk4ODUyODQ4MDk3ODJhYjI4ZjBmZDViZTQxMGQ+Ci9VRSA8ZTUwYmYwOWUwMjk3YjdjZjVkM2MyMTk1ZGIxMTk4YWRkZGM4
    NGM2ZDdhOWIxYTA5MTBiZTE5MTdmZDQxYzE4NT4KL1Blcm1zIDw2ZTZkMzJiYTQ1Yzc2MTljMDU5ZDYzY2JlNjM0ZTM2Yz4KPj4KZW5kb2JqCnhy
    ZWYKMCA3CjAwMDAwMDAwMDAgNjU1MzUgZiAKMDAwMDAwMDAxNSAwMDAwMCBuIAowMDAwMDAwMDY0IDAwMDAwIG4gCjAwMDAwMDAxMjMgMDAwMDAg
    biAKMDAwMDAwMDI1MSAwMDAwMCBuIAowMDAwMDAwMzgxIDAwMDAwIG4gCjAwMDAwMDA0NTEgMDAwMDAgbiAKdHJhaWxlcgo8PAovU2l6ZSA3Ci9S
    b290IDEgMCBSCi9JRCBbIDwzNGQwOGI2ZjdiYmRiMTY3N2ExN2M5NjQxN2ZmYTA2MD4gPDM0ZDA4YjZmN2JiZGIxNjc3YTE3Yzk2NDE3ZmZhMDYw
    PiBdCi9FbmNyeXB0IDYgMCBSCj4+CnN0YXJ0eHJlZgoxMDA2CiUlRU9GCg==
    """
)
"""One page with one line, locked with AES-256."""


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def pdf(*pages: Sequence[Piece]) -> bytes:
    """A PDF of pages with pieces of Helvetica, painted in the order that they are given in."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", FONT]
    kids: list[int] = []
    for pieces in pages:
        painted = "\n".join(
            f"BT /F1 {size} Tf 1 0 0 1 {left} {bottom} Tm ({_escaped(text)}) Tj ET"
            for left, bottom, size, text in pieces
        )
        objects.append(stream(painted.encode("cp1252")))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(b"%d 0 R" % kid for kid in kids), len(kids))
    return written(objects)


def stream(content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)


def written(objects: Sequence[bytes]) -> bytes:
    """A file of objects, the first of them its catalogue."""
    out, offsets = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    return out + head + table + tail


def column(left: float, top: float, *lines: str, size: float = 10, leading: float = 13) -> list[Piece]:
    """Lines under each other."""
    return [(left, top - leading * number, size, line) for number, line in enumerate(lines)]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
