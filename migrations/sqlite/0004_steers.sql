-- Results of jobs on their way into a conversation. They join in the order of their rows.
CREATE TABLE steers (
    id        TEXT PRIMARY KEY NOT NULL, -- its producer's; a second row of the same id is the same steer
    chat      TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    body      TEXT NOT NULL, -- the marker as the record will have it, as JSON
    created   INTEGER NOT NULL, -- Unix time in ms
    delivered INTEGER -- seq of the marker; NULL while it waits
);

CREATE INDEX steers_waiting ON steers (chat) WHERE delivered IS NULL;

ALTER TABLE chats ADD COLUMN held INTEGER NOT NULL DEFAULT 0; -- 1 from a stop to the next input: no run starts by itself
