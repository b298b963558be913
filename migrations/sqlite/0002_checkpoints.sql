-- What an open run has so far and the record has not. It is gone with the run's claim. Rows may be long, so that these
-- tables keep their row ids.

-- The open message, about once a second. It counts only while the record ends at `position`.
CREATE TABLE checkpoints (
    chat     TEXT PRIMARY KEY NOT NULL REFERENCES runs (chat) ON DELETE CASCADE,
    position INTEGER NOT NULL, -- seq of the message that it follows
    message  TEXT NOT NULL -- the assistant message as JSON
);

-- Calls that have ended. They count only for calls of the answer at `position` that have no result.
CREATE TABLE outcomes (
    chat     TEXT NOT NULL REFERENCES runs (chat) ON DELETE CASCADE,
    position INTEGER NOT NULL, -- seq of the answer that called
    nth      INTEGER NOT NULL, -- place of the call among the answer's
    messages TEXT NOT NULL, -- the result and the markers that follow it, as a JSON list
    PRIMARY KEY (chat, position, nth)
);

ALTER TABLE runs ADD COLUMN resumed INTEGER; -- seq of the last message when the run was last resumed
ALTER TABLE runs ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0; -- 1 once the learner has stopped it
