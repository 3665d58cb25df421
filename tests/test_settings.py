"""Settings: read once, cleaned, and refused by name, never by value."""

from __future__ import annotations

from pathlib import Path

import pytest
from dotenv import dotenv_values

from agent.settings import SettingsError, load_settings, read_environment


def test_without_any_setting_there_are_defaults() -> None:
    settings = load_settings({})
    assert not settings.has_provider
    assert (settings.max_turns, settings.max_concurrent_replies, settings.openai_model) == (2, 3, "gpt-4o-mini")
    assert (settings.gradio_server_name, settings.gradio_server_port) == ("127.0.0.1", 7860)


@pytest.mark.parametrize("written", ["  sk-1 ", '"sk-1"', "'sk-1'", '" sk-1 "', "sk-1\n"])
def test_blanks_and_quotes_around_a_value_are_not_part_of_it(written: str) -> None:
    key = load_settings({"OPENAI_API_KEY": written}).openai_api_key
    assert key is not None
    assert key.get_secret_value() == "sk-1"


@pytest.mark.parametrize("empty", ["", "  ", '""', "''"])
def test_an_empty_value_means_unset(empty: str) -> None:
    settings = load_settings({"OPENAI_API_KEY": empty, "MAX_TURNS": empty, "DATA_DIR": empty})
    assert not settings.has_provider
    assert settings.max_turns == 2


def test_an_address_without_a_key_is_a_provider_too() -> None:
    assert load_settings({"OPENAI_BASE_URL": "http://localhost:11434/v1"}).has_provider


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_TURNS", "hunter2"),
        ("MAX_TURNS", "0"),
        ("OPENAI_BASE_URL", "hunter2"),
        ("TELEGRAM_CHAT_ID", "hunter2 me"),
        ("REPLY_TIMEOUT_S", "-1"),
        ("DAILY_TOKENS", "1e9x"),
        ("FRAME_ANCESTORS", "'self'; script-src hunter2"),
        ("GRADIO_SERVER_PORT", "99999"),
        ("ALERT_WEBHOOK_URL", "hunter2"),
        ("PUBLIC_URL", "http://hunter2.example"),
        ("PUBLIC_URL", "https://me:hunter2@me.example"),
        ("PUBLIC_URL", "https://me.example?hunter2"),
    ],
)
def test_a_bad_value_is_refused_by_name_and_never_shown(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({name: value})
    line = str(refused.value)
    assert line.startswith(f"{name}: ")
    assert "\n" not in line
    assert value not in line.removeprefix(name)


def test_every_bad_value_gets_its_own_line() -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({"MAX_TURNS": "x", "CONTEXT_TOKENS": "y"})
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == ["MAX_TURNS", "CONTEXT_TOKENS"]


def test_a_fallback_needs_its_model() -> None:
    with pytest.raises(SettingsError, match="FALLBACK_MODEL"):
        load_settings({"FALLBACK_API_KEY": "k"})


def test_port_is_read_where_gradios_own_variable_is_unset() -> None:
    assert load_settings({"PORT": "8080"}).gradio_server_port == 8080
    assert load_settings({"PORT": "8080", "GRADIO_SERVER_PORT": "9090"}).gradio_server_port == 9090


def test_on_a_space_the_page_listens_to_everybody_behind_one_proxy() -> None:
    settings = load_settings({"SYSTEM": "spaces"})
    assert (settings.gradio_server_name, settings.trusted_proxies) == ("0.0.0.0", 1)


def test_no_secret_shows_in_a_printed_settings_object() -> None:
    secrets = {
        "OPENAI_API_KEY": "hunter2",
        "FALLBACK_API_KEY": "hunter2",
        "FALLBACK_MODEL": "m",
        "TELEGRAM_BOT_TOKEN": "hunter2",
        "ALERT_WEBHOOK_URL": "https://example.com/hunter2",
        "DATABASE_URL": "postgresql+psycopg://me:hunter2@db/x",
        "OWNER_PASSWORD": "hunter2",
    }
    settings = load_settings(secrets)
    assert "hunter2" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_the_real_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('OWNER_NAME="From the file"\nPATH=nowhere\nOPENAI_MODEL=$HOME\n')
    environment = read_environment(tmp_path / ".env")
    assert environment["OWNER_NAME"] == "From the file"
    assert environment["PATH"] != "nowhere"
    assert environment["OPENAI_MODEL"] == "$HOME"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'self'", "'self'"),
        ("self", "'self'"),
        ("none", "'none'"),
        ("self https://a.example", "'self' https://a.example"),
    ],
)
def test_the_keywords_of_frame_ancestors_keep_their_quotes(written: str, meant: str) -> None:
    assert load_settings({"FRAME_ANCESTORS": written}).frame_ancestors == meant


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("MAX_TURNS", "abc", "needs a whole number"),
        ("MAX_TURNS", "11", "needs at most 10"),
        ("CONTEXT_TOKENS", "5", "needs at least 1000"),
        ("REPLY_TIMEOUT_S", "0", "needs more than 0"),
        ("REPLY_TIMEOUT_S", "soon", "needs a number"),
        ("METRICS", "maybe", "needs 0 or 1"),
    ],
)
def test_a_bad_value_is_refused_in_words_that_say_what_it_needs(name: str, value: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({name: value})
    assert str(refused.value) == f"{name}: {reason}"


def test_a_copied_example_changes_nothing() -> None:
    copied = {name: value for name, value in dotenv_values(".env.example").items() if value is not None}
    host = {"SYSTEM": "spaces", "PORT": "9999"}
    assert load_settings({**copied, **host}) == load_settings(host)
