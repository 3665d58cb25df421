"""The turn as others take it: a bare loop over the SDK, openai-agents, LangChain's agent and pydantic-ai.

Each is written as its own documentation writes it, with nothing switched on that the turn does not need.
"""

# pyright: basic, reportMissingImports=false
# The frameworks stand in bench/.venv alone, and are not there where types are checked.

from __future__ import annotations

import json
from typing import Any

from bench.turn_task import (
    MAX_TOKENS,
    MESSAGE,
    MODEL,
    NAME,
    PERSONA,
    AnswerOnce,
    Contacts,
    Show,
    description,
    tool_schema,
)
from tools.gather_user_details import GatherUserDetails


def bare(base_url: str, contacts: Contacts) -> AnswerOnce:
    """What somebody writes who needs one tool and trusts the provider."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=base_url, api_key="none")
    functions = {NAME: contacts.keep}
    tools: Any = [tool_schema()]

    async def answer(show: Show) -> None:
        messages: Any = [{"role": "system", "content": PERSONA}, {"role": "user", "content": MESSAGE}]
        while True:
            text = ""
            calls: Any = {}
            stream = await client.chat.completions.create(
                model=MODEL,
                messages=messages,
                tools=tools,
                max_tokens=MAX_TOKENS,
                stream=True,
                stream_options={"include_usage": True},
            )
            async for chunk in stream:
                if not chunk.choices:
                    continue
                delta = chunk.choices[0].delta
                if delta.content:
                    text += delta.content
                    show(delta.content)
                pieces: Any = delta.tool_calls or ()
                for piece in pieces:
                    call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] = piece.id or call["id"]
                    call["name"] = piece.function.name or call["name"]
                    call["arguments"] += piece.function.arguments or ""
            if not calls:
                return
            messages.append(
                {
                    "role": "assistant",
                    "content": text,
                    "tool_calls": [
                        {
                            "id": call["id"],
                            "type": "function",
                            "function": {"name": call["name"], "arguments": call["arguments"]},
                        }
                        for call in calls.values()
                    ],
                }
            )
            for call in calls.values():
                result = functions[call["name"]](**json.loads(call["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    return answer


def openai_agents(base_url: str, contacts: Contacts) -> AnswerOnce:
    from agents import (
        Agent,
        ModelSettings,
        OpenAIChatCompletionsModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)  # it would send every turn to OpenAI

    @function_tool(name_override=NAME, description_override=description())
    def keep(email: str, notes: str, name: str) -> str:
        return contacts.keep(email, notes, name)

    agent = Agent(
        name="replica",
        instructions=PERSONA,
        tools=[keep],
        model=OpenAIChatCompletionsModel(MODEL, AsyncOpenAI(base_url=base_url, api_key="none")),
        model_settings=ModelSettings(max_tokens=MAX_TOKENS, include_usage=True),
    )

    async def answer(show: Show) -> None:
        async for event in Runner.run_streamed(agent, MESSAGE).stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                show(event.data.delta)

    return answer


def langchain(base_url: str, contacts: Contacts) -> AnswerOnce:
    from langchain.agents import create_agent
    from langchain.tools import tool
    from langchain_openai import ChatOpenAI

    @tool(NAME, description=description(), args_schema=GatherUserDetails)
    async def keep(email: str, notes: str, name: str = "") -> str:
        return contacts.keep(email, notes, name)

    model = ChatOpenAI(model=MODEL, base_url=base_url, api_key="none", max_tokens=MAX_TOKENS, stream_usage=True)
    agent = create_agent(model, [keep], system_prompt=PERSONA)

    async def answer(show: Show) -> None:
        said: Any = {"messages": [{"role": "user", "content": MESSAGE}]}
        async for chunk, _ in agent.astream(said, stream_mode="messages"):
            if chunk.type == "AIMessageChunk" and chunk.content:
                show(chunk.content)

    return answer


def pydantic_ai(base_url: str, contacts: Contacts) -> AnswerOnce:
    from pydantic_ai import Agent, ModelSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent = Agent(model, instructions=PERSONA, model_settings=ModelSettings(max_tokens=MAX_TOKENS))

    @agent.tool_plain(name=NAME, description=description())
    async def keep(email: str, notes: str, name: str = "") -> str:
        return contacts.keep(email, notes, name)

    async def answer(show: Show) -> None:
        async with agent.run_stream(MESSAGE) as reply:
            async for piece in reply.stream_text(delta=True, debounce_by=None):
                show(piece)

    return answer
