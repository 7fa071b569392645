-- Definitions say who changed them, records whether they were dismissed: a program that knows
-- only the schema before cannot read such rows, and this version keeps it away.
ALTER TABLE timers COMMENT='definitions of version 3';
