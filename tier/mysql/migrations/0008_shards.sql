-- The shard of each timer and of each owed row, TimerID.Shard: a node reads what is of its
-- shards. A former program may be writing meanwhile, and its rows get -1; Take fills them.
ALTER TABLE timers ADD COLUMN shard SMALLINT NOT NULL DEFAULT -1;
ALTER TABLE owed ADD COLUMN shard SMALLINT NOT NULL DEFAULT -1;

-- The top byte of id × 0x9E3779B97F4A7C15 mod 2^64, multiplied in halves: the server has no
-- product that overflows.
-- in pieces of id
UPDATE timers SET shard=(((id&4294967295)*2135587861>>32)+((id&4294967295)*2654435769&4294967295)+((id>>32)*2135587861&4294967295)&4294967295)>>24
  WHERE shard=-1;

-- in pieces of timer
UPDATE owed SET shard=(((timer&4294967295)*2135587861>>32)+((timer&4294967295)*2654435769&4294967295)+((timer>>32)*2135587861&4294967295)&4294967295)>>24
  WHERE shard=-1;

-- An index takes the name of the one before when it is whole: a former program goes by the
-- name until it is taken over.
ALTER TABLE timers ADD KEY by_shard (shard, kind, bound, id);
ALTER TABLE timers DROP KEY by_due, RENAME KEY by_shard TO by_due;
ALTER TABLE owed ADD KEY by_shard (shard, not_before, timer, due);
ALTER TABLE owed DROP KEY by_time, RENAME KEY by_shard TO by_time;
ALTER TABLE owed ADD KEY by_lane_shard (lane, not_before, timer, due, shard);
ALTER TABLE owed DROP KEY by_lane, RENAME KEY by_lane_shard TO by_lane;
