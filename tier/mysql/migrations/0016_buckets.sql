-- Which calls of flow keys count whose limit is for more than a minute: under a name, what the owner of the shard of the
-- key has stored, and the fence that it had; as of until, in Unix ms, none of them counts.
CREATE TABLE IF NOT EXISTS buckets (
  name    VARBINARY(512) NOT NULL PRIMARY KEY,
  fence   BIGINT UNSIGNED NOT NULL,
  `until` BIGINT NOT NULL,
  bucket  VARBINARY(8192) NOT NULL,
  KEY by_until (`until`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
