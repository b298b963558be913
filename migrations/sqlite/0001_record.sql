-- The record and what is needed to accept an input exactly once.

CREATE TABLE chats (
    id      TEXT PRIMARY KEY NOT NULL,
    created INTEGER NOT NULL, -- Unix time in ms
    updated INTEGER NOT NULL
) WITHOUT ROWID;

-- Append-only. seq counts from 1 in each chat, without gaps.
CREATE TABLE messages (
    chat TEXT    NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    seq  INTEGER NOT NULL,
    body TEXT    NOT NULL, -- one native message as JSON
    PRIMARY KEY (chat, seq)
);

-- Accepted inputs only; a refused one leaves no trace.
CREATE TABLE inputs (
    chat     TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    input_id TEXT NOT NULL,
    accepted TEXT NOT NULL, -- the 202 that it got, as JSON
    PRIMARY KEY (chat, input_id)
) WITHOUT ROWID;

-- The claim of a run on its chat: at most one a chat.
CREATE TABLE runs (
    chat    TEXT PRIMARY KEY NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    id      TEXT NOT NULL,
    started INTEGER NOT NULL, -- Unix time in ms
    lease   INTEGER NOT NULL, -- Unix time in ms until which its owner holds it
    tries   INTEGER NOT NULL DEFAULT 0 -- resumptions after a crash
) WITHOUT ROWID;
