-- What is wished of the life of a node: 0 to serve, 1 to own no shards, 2 to end. When the last life of a node ended,
-- in Unix ms by the server's clock. The version of what the nodes say to each other that the node speaks.
ALTER TABLE nodes
  ADD COLUMN wish   TINYINT UNSIGNED NOT NULL DEFAULT 0,
  ADD COLUMN ended  BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN speaks SMALLINT UNSIGNED NOT NULL DEFAULT 1;
