-- The nodes that share the database. Each is a process under a name.
CREATE TABLE IF NOT EXISTS nodes (
  name    VARBINARY(255) NOT NULL PRIMARY KEY,
  journal BINARY(16) NOT NULL,
  life    BIGINT UNSIGNED NOT NULL,   -- a random number of the process; 0: the node has none
  beat    BIGINT UNSIGNED NOT NULL,   -- changes with each sign of life
  state   TINYINT UNSIGNED NOT NULL,  -- 1 serving, 2 draining, 3 unfit
  weight  INT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- moves changes whenever a node takes or frees a shard: one row.
CREATE TABLE IF NOT EXISTS cluster (
  one   TINYINT NOT NULL PRIMARY KEY,
  moves BIGINT UNSIGNED NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO cluster (one,moves) VALUES (1,1);

ALTER TABLE shards
  ADD COLUMN heir  VARBINARY(255) NOT NULL DEFAULT '',  -- the node that a free shard was given to
  ADD COLUMN clean TINYINT NOT NULL DEFAULT 0;          -- 1: the former holder gave it, with nothing begun
