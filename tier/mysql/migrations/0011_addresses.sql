-- Where the other nodes reach a node, and what they prove to each other that they are nodes with.
ALTER TABLE nodes   ADD COLUMN address VARBINARY(255) NOT NULL DEFAULT '';
ALTER TABLE cluster ADD COLUMN secret  VARBINARY(32)  NOT NULL DEFAULT '';  -- random, by the first Join
