"""What we compare with: a plain `gr.ChatInterface` that yields the reply so far at each token."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from typing import Any

import gradio as gr
from openai import AsyncOpenAI

from bench.talk import earlier


def main() -> None:
    """Settings come as they would to any small script: PORT, BASE_URL, EARLIER (messages on the page)."""
    client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="none")
    past: Any = [
        {"role": role, "content": text}
        for turn in earlier(int(os.environ["EARLIER"]) // 2)
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]

    async def answer(message: str, history: list[dict[str, Any]]) -> AsyncGenerator[str]:
        said = [{"role": one["role"], "content": text_of(one["content"])} for one in history]
        messages: Any = [*said, {"role": "user", "content": message}]
        text = ""
        async for chunk in await client.chat.completions.create(model="bench", messages=messages, stream=True):
            text += chunk.choices[0].delta.content or ""
            yield text

    chatbot: Any = gr.Chatbot(value=past)
    # As many at once as ours takes: by default it would be one, and three visitors would wait for each other.
    gr.ChatInterface(answer, chatbot=chatbot, concurrency_limit=3).launch(
        server_port=int(os.environ["PORT"]), ssr_mode=False, quiet=True
    )


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


if __name__ == "__main__":
    main()
