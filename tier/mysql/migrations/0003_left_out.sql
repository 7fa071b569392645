-- The minutes of which history is not whole, for want of space: verify must not
-- take a due of theirs for lost.
CREATE TABLE IF NOT EXISTS left_out (
  minute BIGINT NOT NULL PRIMARY KEY
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
