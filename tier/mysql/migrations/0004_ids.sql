-- The greatest id that was used, and may stand in no table any more: no id is issued
-- again. The greatest of all rows counts, and that of timers; a row for each slot of
-- counts, so that writers do not wait for each other.
CREATE TABLE IF NOT EXISTS ids (
  slot   SMALLINT NOT NULL PRIMARY KEY,
  newest BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What is left of the timers that were deleted before that was noted.
INSERT IGNORE INTO ids (slot,newest) SELECT 0,GREATEST(
  COALESCE((SELECT MAX(timer) FROM versions),0), COALESCE((SELECT MAX(timer) FROM owed),0), COALESCE((SELECT MAX(timer) FROM tasks),0));
