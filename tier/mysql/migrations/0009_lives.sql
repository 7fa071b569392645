-- A life is a process that took shards, by a random number. Who writes counts first in a row
-- of fences, a row for each slot of its node: where the row has another life, nothing is
-- written. Programs of schema 8 and before lock the rows of the node '', and compare fence.
ALTER TABLE fences
  ADD COLUMN node VARBINARY(255) NOT NULL DEFAULT '',
  ADD COLUMN life BIGINT UNSIGNED NOT NULL DEFAULT 0,  -- 0: nobody
  ADD COLUMN n    BIGINT UNSIGNED NOT NULL DEFAULT 0,
  DROP PRIMARY KEY, ADD PRIMARY KEY (slot, node);

-- The life that has a shard; 0: a program of schema 8 or before, or nobody.
ALTER TABLE shards ADD COLUMN holder BIGINT UNSIGNED NOT NULL DEFAULT 0;
