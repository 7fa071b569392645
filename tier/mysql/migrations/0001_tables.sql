-- Every statement can be run again: a migration that was cut short is.
-- Times are Unix ms. Texts are bytes: they compare as Go compares them.

CREATE TABLE IF NOT EXISTS timers (
  id         BIGINT NOT NULL PRIMARY KEY,
  app        VARBINARY(64) NOT NULL,
  name       VARBINARY(256) NOT NULL,
  nameless   BIGINT NOT NULL,   -- the id of a timer without a name, else 0: so that these do not collide
  status     TINYINT NOT NULL,
  version    INT UNSIGNED NOT NULL,
  ends       BIGINT NOT NULL,   -- enabled: the last due, 0: no end; finished: when it ended; else 0
  kind       TINYINT NOT NULL,  -- what the plan derives: 0 nothing, 1 one due, at bound, 2 dues from bound on
  bound      BIGINT NOT NULL,
  definition MEDIUMBLOB NOT NULL,
  UNIQUE KEY by_name (app, name, nameless),
  KEY by_due (kind, bound, id),
  KEY by_status (status, app, id),
  KEY by_end (status, ends, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS labels (
  name  VARBINARY(64) NOT NULL,
  value VARBINARY(128) NOT NULL,
  timer BIGINT NOT NULL,
  PRIMARY KEY (name, value, timer)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS versions (
  timer      BIGINT NOT NULL,
  version    INT UNSIGNED NOT NULL,
  `until`    BIGINT NOT NULL,   -- when it was replaced
  deleted    BIGINT NOT NULL,   -- when it was deleted, if it was; else 0
  definition MEDIUMBLOB NOT NULL,
  PRIMARY KEY (timer, version),
  KEY by_end (`until`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS once (
  app     VARBINARY(64) NOT NULL,
  word    VARBINARY(255) NOT NULL,  -- the Idempotency-Key
  timer   BIGINT NOT NULL,
  body    BINARY(32) NOT NULL,      -- SHA-256 of the request's body
  expires BIGINT NOT NULL,
  PRIMARY KEY (app, word),
  KEY by_end (expires)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS owed (
  timer      BIGINT NOT NULL,
  due        BIGINT NOT NULL,
  `until`    BIGINT NOT NULL,   -- the end of a range of dues; 0: a single one
  not_before BIGINT NOT NULL,
  row_bytes  MEDIUMBLOB NOT NULL,
  PRIMARY KEY (timer, due),
  KEY by_time (not_before, timer, due),
  KEY by_day (`until`, due)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tasks (
  due     BIGINT NOT NULL,
  timer   BIGINT NOT NULL,
  status  TINYINT NOT NULL,
  failure TINYINT NOT NULL,
  record  MEDIUMBLOB NOT NULL,
  PRIMARY KEY (due, timer),
  KEY by_timer (timer, due),
  KEY by_failure (failure, due, timer)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
PARTITION BY RANGE (due) (PARTITION ahead VALUES LESS THAN MAXVALUE);

CREATE TABLE IF NOT EXISTS shards (
  shard     SMALLINT NOT NULL PRIMARY KEY,
  fence     BIGINT UNSIGNED NOT NULL,
  owner     VARBINARY(255) NOT NULL,
  watermark BIGINT NOT NULL,
  horizon   BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The feed of changes, a row for all that one commit made. Its numbers rise,
-- but a lower one may become visible later than a higher one: who follows it
-- reads the last seconds again.
CREATE TABLE IF NOT EXISTS changes (
  seq  BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at   BIGINT NOT NULL,
  made MEDIUMBLOB NOT NULL  -- for each change: timer (8 bytes), version (4 bytes; 0: deleted)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- How many timers there are by status: the sum over slots, of which each
-- writer has its own, so that writers do not wait for each other.
CREATE TABLE IF NOT EXISTS counts (
  slot   SMALLINT NOT NULL,
  status TINYINT NOT NULL,
  n      BIGINT NOT NULL,
  PRIMARY KEY (slot, status)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
