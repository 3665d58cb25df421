"""Everything an owner can set: the only reader of the environment."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from dotenv import dotenv_values
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from agent.prices import Price, read_prices

OFF_SWITCHES = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}
"""Set before gradio is imported: the page of a person's replica makes no call that its owner did not ask for."""


class SettingsError(Exception):
    """A setting cannot be used. The message names the variable and what it needs, never its value."""


def _prices(value: object) -> object:
    return read_prices(value) if isinstance(value, str) else value


WebAddress = Annotated[str, Field(pattern=r"^https?://[^\s]+$")]


class Settings(BaseModel):
    """The settings, one field a variable of the same name in capitals."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    openai_api_key: SecretStr | None = None
    """Key of the provider."""
    openai_base_url: WebAddress | None = None
    """Address of any OpenAI-compatible provider; unset: OpenAI's own."""
    openai_model: str = "gpt-4o-mini"
    """Name of the model."""
    embeddings_model: str | None = None
    """Its model for embeddings: large knowledge is then searched by meaning, too; unset: by words alone."""
    fallback_api_key: SecretStr | None = None
    """Key of a second provider, asked when the first one fails."""
    fallback_base_url: WebAddress | None = None
    """Its address."""
    fallback_model: str | None = None
    """Its model."""
    telegram_bot_token: SecretStr | None = None
    """Token of the owner's bot, from @BotFather."""
    telegram_chat_id: str | None = Field(default=None, pattern=r"^(-?\d+|@\w+)$")
    """The owner's chat with the bot."""
    telegram_api_url: WebAddress = "https://api.telegram.org"
    """A relay or a local Bot API server, where the host blocks Telegram."""
    alert_webhook_url: SecretStr | None = None
    """A second channel for alerts."""
    public_url: str | None = Field(default=None, pattern=r"^https://[^\s/?#@]+(/[^\s?#]*)?$")
    """Where the internet reaches the page; set, Telegram brings the owner's messages, else they are fetched."""
    owner_name: str | None = None
    """Whose replica this is; unset: the first heading in the knowledge."""
    knowledge_dir: Path = Path("knowledge")
    """The owner's files."""
    data_dir: Path = Path("data")
    """The SQLite file and caches."""
    database_url: SecretStr | None = None
    """`postgresql+psycopg://…` for more than one machine; unset: SQLite in the data folder."""
    max_turns: int = Field(default=2, ge=1, le=10)
    """Tool rounds a message."""
    max_concurrent_replies: int = Field(default=3, ge=1, le=40)
    """Replies at once in this process, page and API together."""
    max_message_chars: int = Field(default=4000, ge=1)
    """Length of a visitor's message, in characters."""
    max_output_tokens: int = Field(default=800, ge=16)
    """Length of one completion, in tokens."""
    context_tokens: int = Field(default=16000, ge=1000)
    """What the model can read at once, in tokens."""
    reply_timeout_s: float = Field(default=60, gt=0)
    """Wall clock of one reply, in seconds."""
    messages_per_minute: int = Field(default=10, ge=1)
    """Messages a minute in one conversation; three times that for one client address."""
    daily_tokens: int = Field(default=2_000_000, ge=0)
    """Tokens a day for all visitors; 0: no ceiling."""
    model_prices: Annotated[dict[str, Price], BeforeValidator(_prices)] = Field(default_factory=dict[str, Price])
    """USD for a million tokens read, cached and written, by model; over the table in agent/prices.py."""
    metrics: bool = False
    """Numbers for Prometheus at `/metrics`."""
    trusted_proxies: int = Field(default=0, ge=0)
    """How many `X-Forwarded-For` entries from the right to believe."""
    owner_password: SecretStr | None = None
    """Opens the owner's page; unset: there is none."""
    gradio_server_name: str = "127.0.0.1"
    """Address to listen on."""
    gradio_server_port: int = Field(default=7860, ge=0, le=65535)
    """Port to listen on; `PORT` is read where this is unset."""
    frame_ancestors: str = Field(default="'self'", pattern=r"^[^;,\r\n]+$")
    """Sites that may embed the page, as in a Content-Security-Policy."""

    @field_validator("frame_ancestors")
    @classmethod
    def _keywords_are_quoted(cls, value: str) -> str:
        """The quotes of `'self'` are lost where quotes around a value are, as in `.env`."""
        return " ".join(f"'{word}'" if word in ("self", "none") else word for word in value.split())

    @field_validator("alert_webhook_url")
    @classmethod
    def _webhook_is_an_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not re.match(r"https?://[^\s/]+", value.get_secret_value()):
            raise ValueError("needs an address such as https://example.com/hook")
        return value

    @model_validator(mode="after")
    def _fallback_is_whole(self) -> Settings:
        if (self.fallback_api_key or self.fallback_base_url) and not self.fallback_model:
            raise ValueError("FALLBACK_MODEL is missing: name the second provider's model")
        return self

    @property
    def has_provider(self) -> bool:
        """False: the keyless model answers."""
        return self.openai_api_key is not None or self.openai_base_url is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must not be printed."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(value.get_secret_value() for value in values if isinstance(value, SecretStr))

    @property
    def has_fallback(self) -> bool:
        return self.fallback_api_key is not None or self.fallback_base_url is not None


def prepare_environment() -> None:
    """Turns off what libraries would send home. Call it before gradio is imported."""
    for name, value in OFF_SWITCHES.items():
        os.environ.setdefault(name, value)
    # The server would believe X-Forwarded-For from this machine, or from anybody; TRUSTED_PROXIES says whom to believe.
    os.environ["FORWARDED_ALLOW_IPS"] = ""


def read_environment(dotenv: Path = Path(".env")) -> dict[str, str]:
    """The variables of `.env`, under those of the real environment."""
    written = {name: value for name, value in dotenv_values(dotenv, interpolate=False).items() if value is not None}
    real = {name: value for name, value in os.environ.items() if _clean(value)}
    return {**written, **real}


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Settings from variables.

    Raises:
        SettingsError: a value cannot be used.
    """
    values: dict[str, Any] = _defaults_of_the_host(environment)
    for name in Settings.model_fields:
        if cleaned := _clean(environment.get(name.upper(), "")):
            values[name] = cleaned
    if "gradio_server_port" not in values and (port := _clean(environment.get("PORT", ""))):
        values["gradio_server_port"] = port
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(_say(item) for item in error.errors(include_input=False))) from None


def _defaults_of_the_host(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if _clean(environment.get("SYSTEM", "")) == "spaces":
        values |= {"gradio_server_name": "0.0.0.0", "trusted_proxies": 1}
    if not _clean(environment.get("DATA_DIR", "")) and _is_writable(Path("/data")):
        values["data_dir"] = Path("/data")
    return values


def _is_writable(folder: Path) -> bool:
    """Tried, not asked: a mounted disk may refuse what its mode bits allow."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _clean(value: str) -> str:
    """Without the blanks and quotes that come along when a value is pasted into a host's form."""
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1].strip()
    return value


def _say(item: Any) -> str:
    name = "_".join(str(part) for part in item["loc"]).upper()
    limits: dict[str, Any] = item.get("ctx", {})
    reason = item["msg"].removeprefix("Value error, ")
    match item["type"]:
        case "string_pattern_mismatch":
            reason = _EXPECTED.get(name, "has the wrong form")
        case "int_parsing" | "int_from_float":
            reason = "needs a whole number"
        case "float_parsing":
            reason = "needs a number"
        case "bool_parsing":
            reason = "needs 0 or 1"
        case "greater_than_equal":
            reason = f"needs at least {limits['ge']}"
        case "less_than_equal":
            reason = f"needs at most {limits['le']}"
        case "greater_than":
            reason = f"needs more than {limits['gt']:g}"
        case _:
            pass
    return f"{name}: {reason}" if name else reason


_EXPECTED = {
    **dict.fromkeys(
        ("OPENAI_BASE_URL", "FALLBACK_BASE_URL", "TELEGRAM_API_URL"), "needs an address such as https://example.com/v1"
    ),
    "PUBLIC_URL": "needs an address such as https://me.example.com",
    "TELEGRAM_CHAT_ID": "needs a number such as 123456789; `python -m alerts.telegram` finds it",
    "FRAME_ANCESTORS": "needs sources separated by blanks, such as 'self' https://example.com",
}
