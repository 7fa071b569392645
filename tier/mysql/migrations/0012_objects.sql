-- What users configure beside timers: documents under a kind, an app and a name.
CREATE TABLE IF NOT EXISTS objects (
  kind   VARBINARY(32) NOT NULL,
  app    VARBINARY(64) NOT NULL,
  name   VARBINARY(255) NOT NULL,
  object MEDIUMBLOB NOT NULL,  -- as AppendObject writes it
  PRIMARY KEY (kind, app, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
