"""The log holds no secret."""

from __future__ import annotations

import io
import logging
import sys

from agent.log import Redacting


def test_a_secret_is_left_out_of_messages_and_tracebacks() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(Redacting("%(message)s", ["12345:secret", "12345:secret-longer"]))
    try:
        raise RuntimeError("GET https://api.telegram.org/bot12345:secret-longer/getMe failed")
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "with %s", ("12345:secret",), sys.exc_info())
        handler.emit(record)
    text = out.getvalue()
    assert "RuntimeError" in text
    assert "12345" not in text
    assert "longer" not in text
    assert text.startswith("with [secret]\n")
