-- Who writes without marks (a change, a row of owed) locks a row of these and holds
-- its fence against the one that its process was given: a process that was taken
-- over can acknowledge nothing more. A row for each slot of counts, so that writers
-- do not wait for each other; who takes the shards moves all of them.
CREATE TABLE IF NOT EXISTS fences (
  slot  SMALLINT NOT NULL PRIMARY KEY,
  fence BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO fences (slot,fence) VALUES
  (0,0),(1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0),(8,0),(9,0),(10,0),(11,0),(12,0),(13,0),(14,0),(15,0),(16,0),(17,0),(18,0),(19,0),(20,0),(21,0),(22,0),(23,0),(24,0),(25,0),(26,0),(27,0),(28,0),(29,0),(30,0),(31,0),(32,0),(33,0),(34,0),(35,0),(36,0),(37,0),(38,0),(39,0),(40,0),(41,0),(42,0),(43,0),(44,0),(45,0),(46,0),(47,0),(48,0),(49,0),(50,0),(51,0),(52,0),(53,0),(54,0),(55,0),(56,0),(57,0),(58,0),(59,0),(60,0),(61,0),(62,0),(63,0);
