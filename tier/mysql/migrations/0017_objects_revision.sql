-- revision changes with each transaction that changes an object: one row. A node reads the objects again when it changes.
CREATE TABLE IF NOT EXISTS objects_revision (
  one      TINYINT NOT NULL PRIMARY KEY,
  revision BIGINT UNSIGNED NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO objects_revision (one,revision) VALUES (1,1);
