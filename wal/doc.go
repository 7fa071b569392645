// Package wal remembers what has fired until the outcome is saved.
//
// A Log is the journal of one node: a Begin before each call, a Finish after its
// answer was read, and a Forget once the cold tier has the outcome. After a
// crash Replay returns what was under way. A Log that was closed can be opened
// again, as a start does whose cold tier was away. Guard, beside it, watches the
// free space that the journal must never run out of.
//
// # A log of groups
//
// The obvious journal is a key per task in Pebble: set at Begin, set again at
// Finish, deleted when settled. That costs three keys of memtable, log and
// compaction a task, a point deletion each, and an index that nobody uses. But a
// journal is only appended to, read once from its oldest record on, and dropped
// from there. So records gather in memory, and what gathered while the disk was
// busy becomes one key:
//
//	Begin, Finish ─► pending group ─► committer ─► one key, one fsync ─► wakes Sync
//	                 (a mutex, an append)          └► Forget: one DeleteRange
//
//	keys     g + first position (8, big endian)    a group
//	         f                                     gone up to (8, big endian)
//	         s                                     over MySQL: forgotten up to (8), and
//	                                               the watermarks of 256 shards (8 each)
//	         v                                     version of these keys (1)
//
//	group    0   1    2            10                         -4
//	         +---+----+------------+------------------- - - --+--------+
//	         | 1 |kind| count (8)  | records                  | crc32c |
//	         +---+----+------------+------------------- - - --+--------+
//	         kind 'r': records.  'l': count records are lost, see below; no records.
//	         The sum covers the position in the key and all bytes before it.
//
//	begun    | 1 | flags | timer (8) | due (8) | generation (4) | attempt (4) |
//	         flags: origin (low four bits), 0x10 at_most_once
//	finished | 2 | length (4) | task, as engine.AppendTask wrote it |
//
// All numbers but those in keys are little endian. A group may be 1 MiB (a
// quarter of the memtable where that is less); what gathers beyond it makes more
// groups, and a commit takes several. Groups follow one another without a gap,
// and Open verifies that and every checksum: what cannot be trusted is refused
// at the start, with position and offset.
//
// # Promises
//
//   - What Sync(p) returned nil for is replayed after any crash, until forgotten.
//   - What is replayed is all from the last forgotten group on up to some point:
//     in order, no holes, nothing after a missing record.
//   - Positions of durable records are never given again.
//   - Begin, Finish and Forget never wait for the disk.
//
// What is forgotten is dropped, or with Config.Keep kept for a while for a cold tier that
// goes back to an earlier state, see kept. At 50,000 fires/s that costs 0.35 µs a fire.
//
// Forget takes effect with the next commit and is not synced itself. After a power
// failure whole groups may come back; the engine settles them once more, which
// changes nothing. It costs one range deletion and one key, however much is dropped
// and however much stays: 6 µs beside 10,000 groups that stay, 8 µs beside 1,000,000
// (go test -bench Forget).
//
// # When it commits
//
// At once when somebody waits in Sync, or a group is full. Results that nobody
// waits for: Spacing (10 ms) after the last commit began. Only Begins: when the
// oldest is Linger (20 ms) old, since losing one costs nothing that a crash does
// not cost anyway. Otherwise never: an idle journal does not touch the disk.
//
// A stream of 100,000 records/s of 26 and 125 bytes with a Forget every 200 ms,
// 2 cores (AMD EPYC, ext4, fsync 0.15 ms), go test -bench Stream:
//
//	spacing   commits/s   CPU of one core   oldest unsynced
//	none          951        15.1 %            4.3 ms
//	1 ms          872        11.7 %            4.4 ms
//	2 ms          454         9.5 %            8.2 ms
//	5 ms          182         6.1 %            8.0 ms
//
// Spacing is also what a kill -9 can cost: the results of 10 ms are called again.
//
// With everybody waiting, go test -bench 'Commit|Append' on the quiet machine:
//
//	writers   records/s    ns/record   sync p50   sync p99
//	     1       12,800       78,000    0.15 ms    0.21 ms
//	    64      362,000        2,760    0.34 ms    0.51 ms
//	 1,024    1,965,000          509    0.92 ms    2.62 ms
//	nobody waiting                98 (0 allocations)
//
// Memtables of 2, 4, 8, 16, 32 MiB took 9, 22, 44, 106, 247 MiB of disk at most in
// that stream, and within the noise the same CPU (10–12 %): 16 MiB is chosen
// because a settle may lag a second before forgotten records are written to
// tables at all, and is scaled down on small disks.
//
// # When the disk fails
//
//	stalls         Unsynced grows: the engine pauses dispatch at 50,000 records or
//	               2 s, which bounds memory. Err is ErrStalled after 10 s; the
//	               process ends after 60 s. A stall that ends sooner costs nothing.
//	write, fsync   of the log or a directory: the process ends (70), a line on stderr and
//	               in last_fatal. Asking again may lie, so a start finds out.
//	table write    Pebble tries again, ten times a second and not 30,000.
//	full           Guard refuses creates, and then history, early enough that what
//	               fires afterwards still fits: see there.
//	damage         Open refuses. Pebble drops the last two blocks of a damaged log
//	               in silence; the mark of the folder shows that, see below.
//
// Package disk ends the process, and keeps the folder, its lock and its backups,
// for the journal and for the embedded cold tier.
//
// # The mark
//
// After each commit, and before Sync returns, the number of durable records is
// written to the mark of the folder (disk.Mark). A start that finds fewer records
// refuses, unless AcceptDataLoss: then a group of kind 'l' takes the positions of
// the lost records. The key f keeps a journal whose groups are all forgotten from
// looking like one that lost them. The mark is made before the key v, so a journal
// that has the key and no mark is refused too.
package wal
