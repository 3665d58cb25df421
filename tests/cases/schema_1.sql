-- The tables of the program before migrations, as it made them in SQLite, and some rows of a day on it.
-- PostgreSQL: `id` and `version` are SERIAL there, DATETIME is TIMESTAMP WITH TIME ZONE.

CREATE TABLE alerts (
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    reference TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due DATETIME NOT NULL,
    reason TEXT NOT NULL,
    created DATETIME NOT NULL,
    sent DATETIME,
    CONSTRAINT pk_alerts PRIMARY KEY (id),
    CONSTRAINT uq_alerts_reference UNIQUE (reference)
);

CREATE INDEX ix_alerts_state_due ON alerts (state, due);

CREATE TABLE model_calls (
    id INTEGER NOT NULL,
    conversation_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at DATETIME NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    outcome TEXT NOT NULL,
    duration_s FLOAT NOT NULL,
    first_token_s FLOAT,
    tokens_in INTEGER NOT NULL,
    tokens_cached INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    estimated BOOLEAN NOT NULL,
    finish TEXT NOT NULL,
    tools TEXT NOT NULL,
    error TEXT NOT NULL,
    cost FLOAT,
    CONSTRAINT pk_model_calls PRIMARY KEY (id)
);

CREATE INDEX ix_model_calls_at ON model_calls (at);

CREATE TABLE schema_version (
    version INTEGER NOT NULL,
    CONSTRAINT pk_schema_version PRIMARY KEY (version)
);

CREATE TABLE turns (
    id INTEGER NOT NULL,
    conversation_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    message TEXT NOT NULL,
    steps TEXT,
    stop TEXT,
    liked BOOLEAN,
    replaced BOOLEAN NOT NULL,
    opened DATETIME NOT NULL,
    closed DATETIME,
    CONSTRAINT pk_turns PRIMARY KEY (id),
    CONSTRAINT uq_turns_conversation_id_number UNIQUE (conversation_id, number)
);

CREATE TABLE contacts (
    id INTEGER NOT NULL,
    conversation_id TEXT NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    ascii_email TEXT NOT NULL,
    notes TEXT NOT NULL,
    name TEXT NOT NULL,
    disposable BOOLEAN NOT NULL,
    alert_id INTEGER NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_contacts PRIMARY KEY (id),
    CONSTRAINT uq_contacts_conversation_id_email_key UNIQUE (conversation_id, email_key),
    CONSTRAINT fk_contacts_alert_id FOREIGN KEY(alert_id) REFERENCES alerts (id)
);

CREATE TABLE questions (
    id INTEGER NOT NULL,
    conversation_id TEXT NOT NULL,
    question TEXT NOT NULL,
    question_key TEXT NOT NULL,
    alert_id INTEGER NOT NULL,
    created DATETIME NOT NULL,
    CONSTRAINT pk_questions PRIMARY KEY (id),
    CONSTRAINT uq_questions_conversation_id_question_key UNIQUE (conversation_id, question_key),
    CONSTRAINT fk_questions_alert_id FOREIGN KEY(alert_id) REFERENCES alerts (id)
);

INSERT INTO schema_version (version) VALUES (1);

INSERT INTO turns (conversation_id, number, message, steps, stop, liked, replaced, opened, closed) VALUES
('talk-1', 0, 'Does Ada ski?', '[{"reply": {"text": "I do not know.", "calls": [], "finish": "stop", "usage": null, "reasoning": ""}, "results": []}]',
 'answered', TRUE, FALSE, '2030-01-01 10:00:00.000000', '2030-01-01 10:00:05.500000'),
('talk-1', 1, 'Then write to me.', NULL, NULL, NULL, FALSE, '2030-01-01 10:01:00.000000', NULL),
('talk-2', 0, 'Ünïcödé 🦊', NULL, NULL, NULL, TRUE, '2030-01-01 11:00:00.000000', NULL);

INSERT INTO alerts (kind, key, reference, text, state, attempts, due, reason, created, sent) VALUES
('question', '', 'Q-22222', 'I could not answer: Does Ada ski?', 'sent', 1, '2030-01-01 10:10:01.000000', '', '2030-01-01 10:00:01.000000', '2030-01-01 10:00:02.000000'),
('contact', '', 'C-33333', 'Jane', 'failed', 3, '2030-01-01 10:11:00.000000', 'Telegram is away', '2030-01-01 10:01:01.000000', NULL),
('contact', '', 'C-33333-2', 'More of Jane', 'pending', 0, '2030-01-01 10:02:00.000000', '', '2030-01-01 10:02:00.000000', NULL),
('trouble', 'provider', 'T-44444', 'Trouble: it is down', 'kept', 1, '2030-01-01 10:03:00.000000', '', '2030-01-01 10:03:00.000000', NULL);

INSERT INTO contacts (conversation_id, email, email_key, ascii_email, notes, name, disposable, alert_id, created) VALUES
('talk-1', 'Jane@example.org', 'jane@example.org', 'Jane@example.org', 'a job', 'Jane', FALSE, 2, '2030-01-01 10:01:01.000000');

INSERT INTO questions (conversation_id, question, question_key, alert_id, created) VALUES
('talk-1', 'Does Ada ski?', 'the digest of it', 1, '2030-01-01 10:00:01.000000');

INSERT INTO model_calls (conversation_id, number, at, provider, model, outcome, duration_s, first_token_s, tokens_in,
 tokens_cached, tokens_out, estimated, finish, tools, error, cost) VALUES
('talk-1', 0, '2030-01-01 10:00:00.000000', 'api.example', 'm', 'answered', 1.5, NULL, 100, 0, 20, FALSE, 'stop', 'inform_unknown', '', 0.25);
