-- Rows wait by lane, the work of one app for one target (a hash; 0: from before).
ALTER TABLE owed ADD COLUMN lane BIGINT NOT NULL DEFAULT 0, ADD KEY by_lane (lane, not_before, timer, due);
