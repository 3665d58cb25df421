"""Databases of earlier programs are taken over with all that is in them, or left as they were."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from agent.conversation import Reply, Step, Turn
from store.database import open_engine
from store.records import Alert, Answer, Contact, KeptCall, Question, StoreError
from store.schema import NEWEST, REVISIONS, upgrade
from store.store import Store
from store.tables import metadata
from tests.databases import Server, run_sql

ROOT = Path(__file__).parents[1]
FIRST = (ROOT / "tests/cases/schema_1.sql").read_text("utf-8")
WITHOUT_CALLS = f"{FIRST}; DROP TABLE model_calls"
"""The first program of all made no such table."""
JOBS = 4

OPEN = """
import sys
from store.database import open_engine
print("ready", flush=True)
sys.stdin.readline()
open_engine(sys.argv[1]).dispose()
print("alembic" in sys.modules)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/replica.sqlite3"
        return
    server: Server = request.getfixturevalue("postgresql")
    with server.database() as url:
        yield url


def fill(url: str, script: str) -> None:
    if url.startswith("postgresql"):
        script = re.sub(r"\b(id|version) INTEGER", r"\1 SERIAL", script).replace("DATETIME", "TIMESTAMP WITH TIME ZONE")
        script = f"SET TIME ZONE 'UTC'; {script}"
    script = re.sub("--.*", "", script)
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in script.split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()


def open_at_once(url: str, processes: int) -> list[str]:
    """Each process starts when all are there. Returns what each of them said last."""
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    for job in jobs:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
    for job in jobs:
        assert job.stdin is not None
        job.stdin.write("go\n")
        job.stdin.flush()
    return [job.communicate(timeout=60)[0].strip() if job.wait(60) == 0 else "failed" for job in jobs]


def differences(url: str) -> list[object]:
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = compare_metadata(context, metadata)
    engine.dispose()
    return list(found)


def moment(time: str) -> datetime:
    return datetime.fromisoformat(f"2030-01-01T{time}+00:00")


# What the earlier programs kept


@pytest.mark.parametrize("earlier", [FIRST, WITHOUT_CALLS], ids=["first", "first without model_calls"])
async def test_all_that_an_earlier_program_kept_is_there(empty: str, earlier: str) -> None:
    fill(empty, earlier)
    store = Store.open(empty)
    transcript = await store.transcript("talk-1")
    assert transcript.conversation.turns == (
        Turn("Does Ada ski?", (Step(Reply("I do not know.")),)),
        Turn("Then write to me.", (Step(Reply(finish="cut")),)),
    )
    assert (transcript.numbers, transcript.feedback, transcript.words) == ((0, 1), (True, None), ((), ()))
    assert await store.open_turn("talk-2", "again") == 1
    assert await store.contacts() == [Contact("talk-1", "Jane@example.org", "Jane@example.org", "a job", "Jane")]
    assert await store.questions() == [Question("talk-1", "Does Ada ski?")]
    assert await store.alert_counts() == {"pending": 1, "failed": 1, "kept": 1, "sent": 1}
    assert await store.next_alert_due() == moment("10:02:00")
    assert await store.alerts_sent_since(moment("10:00:00")) == (1, moment("10:00:02"))
    jane, more = await store.claim_due_alerts(9, moment("12:00:00"), "me")
    assert jane == Alert(2, "contact", "C-33333", "Jane", moment("10:01:01"), 4, "talk-1")
    assert (more.reference, more.conversation_id) == ("C-33333-2", "talk-1")
    calls = [
        KeptCall(
            "talk-1", 0, moment("10:00:00"), "api.example", "m", "answered", 1.5, None, 100, 0, 20, False,
            "stop", "inform_unknown", "", 0.25
        )
    ]  # fmt: skip
    assert await store.model_calls() == (calls if earlier == FIRST else [])
    await store.close()


async def test_alerts_of_an_earlier_program_know_their_visitor(empty: str) -> None:
    fill(empty, FIRST)
    store = Store.open(empty)
    about = [await store.target_named(reference) for reference in ("Q-22222", "C-33333-2", "T-44444")]
    assert [target and target.conversation_id for target in about] == ["talk-1", "talk-1", None]
    assert await store.forget("Q-22222") == "all that was kept of one visitor: 1 contact, 1 question, 2 messages"
    assert run_sql(empty, "SELECT reference FROM alerts") == [("T-44444",)]
    await store.close()


async def test_what_was_added_after_the_migration_gets_ids_of_its_own(empty: str) -> None:
    fill(empty, FIRST)
    store = Store.open(empty)
    assert await store.add_contact(Contact("talk-2", "b@example.org", "b@example.org", ""), str, str) == "new"
    assert await store.add_trouble("disk", "full", timedelta(hours=1))
    assert sum((await store.alert_counts()).values()) == 6
    await store.close()


async def test_what_the_owner_wrote_before_edits_were_told_apart_is_there(empty: str) -> None:
    fill(empty, FIRST)
    engine = create_engine(empty)
    with engine.begin() as connection:
        upgrade(connection, "0002")
    engine.dispose()
    written = "'2030-01-01 12:00:00+00:00'" if empty.startswith("postgresql") else "'2030-01-01 12:00:00.000000'"
    run_sql(
        empty,
        "INSERT INTO answers (id, reference, question, text, question_id, created, changed) "
        f"SELECT 1, 'A-55555', question, 'No.', id, {written}, {written} FROM questions",
    )
    run_sql(
        empty,
        "INSERT INTO owner_words (conversation_id, after, text, answer_id, question, created) "
        f"VALUES ('talk-1', 1, 'No.', 1, 'Does Ada ski?', {written})",
    )
    store = Store.open(empty)
    assert await store.answers() == (Answer("A-55555", "Does Ada ski?", "No.", moment("12:00:00")),)
    (words,) = await store.owner_words("talk-1")
    assert (words.after, words.text, words.question) == (1, "No.", "Does Ada ski?")
    await store.close()
    assert differences(empty) == []


# The schema


def test_the_newest_revision_is_the_one_that_the_program_looks_for() -> None:
    assert ScriptDirectory(str(REVISIONS), version_locations=[str(REVISIONS)]).get_heads() == [NEWEST]


@pytest.mark.parametrize("earlier", ["", FIRST, WITHOUT_CALLS], ids=["empty", "first", "first without model_calls"])
def test_the_migrated_tables_are_those_of_the_program(empty: str, earlier: str) -> None:
    fill(empty, earlier)
    open_engine(empty).dispose()
    assert differences(empty) == []
    assert run_sql(empty, "SELECT version_num FROM alembic_version") == [(NEWEST,)]


def test_tables_that_differ_are_seen(empty: str) -> None:
    open_engine(empty).dispose()
    run_sql(empty, "ALTER TABLE states ADD COLUMN more INTEGER")
    run_sql(empty, "DROP INDEX ix_owner_words_conversation_id")
    assert len(differences(empty)) == 2


# Starting


@pytest.mark.parametrize("earlier", ["", FIRST], ids=["empty", "first"])
def test_processes_that_start_at_once_migrate_once(empty: str, earlier: str) -> None:
    fill(empty, earlier)
    assert "failed" not in open_at_once(empty, JOBS)
    assert differences(empty) == []
    assert run_sql(empty, "SELECT count(*) FROM alembic_version") == [(1,)]
    assert run_sql(empty, "SELECT count(*) FROM turns") == [(3 if earlier else 0,)]


def test_a_start_with_nothing_to_migrate_does_without_alembic(empty: str) -> None:
    assert open_at_once(empty, 1) == ["True"]
    assert open_at_once(empty, 1) == ["False"]


def test_a_database_of_a_newer_program_stops_the_start_and_stays_as_it_is(empty: str) -> None:
    open_engine(empty).dispose()
    run_sql(empty, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match=r"newer program .*'9999'.*another database"):
        Store.open(empty)
    assert run_sql(empty, "SELECT version_num FROM alembic_version") == [("9999",)]


@pytest.mark.parametrize(
    "obstacle",
    [
        "ALTER TABLE alerts ADD COLUMN reply_to INTEGER",
        "CREATE TABLE x (y INTEGER); CREATE INDEX ix_owner_words_conversation_id ON x (y)",
    ],
    ids=["early", "late"],
)
def test_a_migration_that_fails_leaves_everything_as_it_was(empty: str, obstacle: str) -> None:
    fill(empty, f"{FIRST}; {obstacle}")
    before = contents(empty)
    with pytest.raises(StoreError, match="nothing in it was changed"):
        Store.open(empty)
    assert contents(empty) == before
    assert len(before["turns"]) > 3


def contents(url: str) -> dict[str, list[Any]]:
    """Every table with its columns and rows."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = inspect(connection)
        tables: dict[str, list[Any]] = {
            name: [
                *(column["name"] for column in found.get_columns(name)),
                *(tuple(row) for row in connection.execute(text(f"SELECT * FROM {name} ORDER BY 1"))),
            ]
            for name in found.get_table_names()
        }
    engine.dispose()
    return tables
