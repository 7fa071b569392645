-- By how many milliseconds the clock of a node is ahead of the server's.
ALTER TABLE nodes ADD COLUMN skew BIGINT NOT NULL DEFAULT 0;
