package redis

import (
	goredis "github.com/redis/go-redis/v9"
)

// The scripts. All keys of a call are of one shard. KEYS[1] is always its
// manifest, a hash:
//
//	run          who writes the shard: a token of one process, new after a loss
//	seq          how many writes of that run were made
//	<minute>:<k> "count sum written-at" of the k-th bucket of a minute
//
// ARGV begins with
//
//	1 run   2 lo   3 hi   4 next   5 ttl of the manifest (s)   6 now (Unix ms)
//
// and a script goes on only if the manifest is of this run and lo ≤ seq ≤ hi:
// all that was acknowledged is there, and nothing that was never sent. lo = -1
// takes the shard over whatever is there. The reply is "lost" otherwise. A call
// that finds seq = next was made before and its reply was lost: it changes
// nothing and tells what it told then.
//
// sum is the sum of weigh over the bucket, modulo 2^48: it does not depend on the
// order, and a double holds it exactly.
const prelude = `
local run, lo, hi, nxt = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local made = false
do
	local h = redis.pcall('HMGET', KEYS[1], 'run', 'seq')
	if h.err then h = {} end -- something else has the key
	local seq = tonumber(h[2] or -1)
	made = h[1] == run and seq == nxt
	if not made then
		if lo ~= -1 and (h[1] ~= run or seq < lo or seq > hi) then
			return {'lost'}
		end
		-- First of all something that a full server refuses: after a write that it
		-- does not refuse, such as UNLINK, a script may go on beyond maxmemory.
		if lo ~= -1 then
			redis.call('HSET', KEYS[1], 'run', run)
		else
			redis.call('SET', KEYS[1], run) -- of whatever type it was
			redis.call('DEL', KEYS[1])
		end
	end
end
local function weigh(id, due)
	return tonumber(string.sub(redis.sha1hex(id .. due), 1, 12), 16)
end
local function told(field)
	local c, s = string.match(redis.call('HGET', KEYS[1], field) or '0 0', '^(%d+) (%d+)')
	return tonumber(c), tonumber(s)
end
local function note(field, count, sum)
	redis.call('HSET', KEYS[1], field, string.format('%d %.0f %s', count, sum, ARGV[6]))
end
local function finish()
	redis.call('HSET', KEYS[1], 'run', run, 'seq', nxt)
	redis.call('EXPIRE', KEYS[1], ARGV[5])
end
local function version(v)
	return struct.unpack('>I4', v)
end
`

// addScript puts entries into buckets and definitions into their hashes. A call
// of Redis from Lua costs more than what it does, so there are few of them.
//
//	KEYS  manifest, a bucket for each of b groups, a hash for each of d groups
//	ARGV  7 b   8 d
//	      b times: field in the manifest, ttl (s), count and sum that the caller
//	               knows, n, then n times: id, due, their weight. A bucket that
//	               must be empty is deleted first, so nothing of a former run
//	               stays in it.
//	      d times: ttl (s), 1 to delete the hash first, n, then n times: id,
//	               version (4 bytes) and definition
//	reply "ok", b times: count, sum
var addScript = goredis.NewScript(prelude + `
local at, out = 9, {'ok'}
for g = 1, tonumber(ARGV[7]) do
	local key, field, ttl, count, sum, n =
		KEYS[1 + g], ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
	at = at + 5
	if made then
		count, sum = told(field)
	else
		local there, due, args, each = {}, {}, {}, false
		if count == 0 then
			redis.call('UNLINK', key)
		elseif count < 8 * n then
			-- Without the scores: to write one as text takes a microsecond.
			for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do there[id] = true end
		else
			each = true
		end
		for i = at, at + 3 * n - 3, 3 do
			local id, d = ARGV[i], ARGV[i + 1]
			local was = due[id] or ((each or there[id]) and redis.call('ZSCORE', key, id))
			if not was or tonumber(d) < tonumber(was) then
				if was then
					sum = sum - weigh(id, was)
				else
					count = count + 1
				end
				sum = (sum + tonumber(ARGV[i + 2])) % 281474976710656
				due[id] = d
				args[#args + 1] = d
				args[#args + 1] = id
			end
		end
		if #args > 0 then
			redis.call('ZADD', key, unpack(args))
		end
		redis.call('EXPIRE', key, ttl)
		note(field, count, sum)
	end
	at = at + 3 * n
	out[#out + 1] = count
	out[#out + 1] = sum
end
if made then return out end
for g = 1, tonumber(ARGV[8]) do
	local key, ttl, isNew, n = KEYS[1 + ARGV[7] + g], ARGV[at], ARGV[at + 1] == '1', tonumber(ARGV[at + 2])
	at = at + 3
	local ids, old, best, args = {}, {}, {}, {}
	for i = at, at + 2 * n - 2, 2 do ids[#ids + 1] = ARGV[i] end
	if isNew then
		redis.call('UNLINK', key)
	else
		old = redis.call('HMGET', key, unpack(ids))
	end
	for i, id in ipairs(ids) do
		local v = ARGV[at + 2 * i - 1]
		local was = best[id] or old[i]
		if not was or version(was) < version(v) then
			best[id] = v
			args[#args + 1] = id
			args[#args + 1] = v
		end
	end
	if #args > 0 then
		redis.call('HSET', key, unpack(args))
	end
	redis.call('EXPIRE', key, ttl)
	at = at + 2 * n
end
finish()
return out
`)

// splitScript moves the half of one bucket into the next that its minute gets.
//
//	KEYS  manifest, from, to
//	ARGV  7 field of from   8 field of to   9 ttl (s)   10 modulus   11 remainder:
//	      what has this remainder goes (see partOf)
//	reply "ok", count and sum of from, count and sum of to
var splitScript = goredis.NewScript(prelude + `
if not made then
	local z = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
	local c, s, stay = {[0] = 0, 0}, {[0] = 0, 0}, {}
	redis.call('UNLINK', KEYS[3])
	for i = 1, #z, 2 do
		local goes = tonumber(string.sub(redis.sha1hex(z[i]), 1, 4), 16) % ARGV[10] == tonumber(ARGV[11]) and 1 or 0
		c[goes], s[goes] = c[goes] + 1, (s[goes] + weigh(z[i], z[i + 1])) % 281474976710656
		if goes == 1 then
			redis.call('ZADD', KEYS[3], z[i + 1], z[i])
			redis.call('ZREM', KEYS[2], z[i])
		end
	end
	redis.call('EXPIRE', KEYS[3], ARGV[9])
	note(ARGV[7], c[0], s[0])
	note(ARGV[8], c[1], s[1])
	finish()
end
local c0, s0 = told(ARGV[7])
local c1, s1 = told(ARGV[8])
return {'ok', c0, s0, c1, s1}
`)

// updateScript replaces the definition of a timer wherever one is kept.
//
//	KEYS  manifest, hashes of definitions
//	ARGV  7 id   8 version (4 bytes) and definition; empty: the timer is gone
//	reply "ok"
var updateScript = goredis.NewScript(prelude + `
if made then return {'ok'} end
for k = 2, #KEYS do
	local was = redis.call('HGET', KEYS[k], ARGV[7])
	if was and ARGV[8] == '' then
		redis.call('HDEL', KEYS[k], ARGV[7])
	elseif was and version(was) <= version(ARGV[8]) then
		redis.call('HSET', KEYS[k], ARGV[7], ARGV[8])
	end
end
finish()
return {'ok'}
`)
