-- Who took the shards last, and who waits to take them: one row. A database of which nobody
-- has taken the shards yet has nobody to wait for.
CREATE TABLE IF NOT EXISTS owner (
  one     TINYINT NOT NULL PRIMARY KEY,
  process VARBINARY(64) NOT NULL,  -- a random word; '' where a former program took them
  folder  VARBINARY(64) NOT NULL,  -- that of its data directory; '' without one
  ended   TINYINT NOT NULL,        -- 1: it begins no call any more
  heir    VARBINARY(64) NOT NULL   -- the process that waits to take them; '' for none
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO owner (one,process,folder,ended,heir) SELECT 1,'','',COALESCE(MAX(fence),0)=0,'' FROM fences;
