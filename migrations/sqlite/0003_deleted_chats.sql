-- A deleted chat is kept for a while, so that the deletion can be undone.

ALTER TABLE chats ADD COLUMN deleted INTEGER; -- Unix time in ms; NULL for a chat that is there
