-- The life that held the shard before and did not give it clean; 0: none. What it finished may be in its mirror.
ALTER TABLE shards ADD COLUMN former BIGINT UNSIGNED NOT NULL DEFAULT 0;
