/**
 * The scripts of `redis-memory.ts`. The only key that each script gets is the prefix of all its keys:
 *
 * - `v:ID` is a value, with its time to live
 * - `expiry` orders the ids by the time at which they expire
 * - `entries` has `BYTES ADD_MS OWNER` by id
 * - `use` has the sums: `bytes`, `number`, and `of:OWNER` for each owner
 */
const COMMON = `
local base = KEYS[1]
local EXPIRY, ENTRIES, USE = base .. 'expiry', base .. 'entries', base .. 'use'

local function sum(field)
  return tonumber(redis.call('HGET', USE, field) or '0')
end

local function drop(id)
  redis.call('DEL', base .. 'v:' .. id)
  redis.call('ZREM', EXPIRY, id)
  local entry = redis.call('HGET', ENTRIES, id)
  if not entry then return end
  redis.call('HDEL', ENTRIES, id)
  local bytes, owner = entry:match('^(%d+) %d+ (.+)$')
  redis.call('HINCRBY', USE, 'bytes', -tonumber(bytes))
  redis.call('HINCRBY', USE, 'number', -1)
  if redis.call('HINCRBY', USE, 'of:' .. owner, -1) <= 0 then redis.call('HDEL', USE, 'of:' .. owner) end
end
`;

/** Maximum number of expired entries that one script removes. During a script, Redis answers no other call. */
const EXPIRED = 500;

/**
 * The time to live of `expiry`, `entries` and `use` after the last `add`, in milliseconds: 31 days. No value has a
 * longer time to live.
 */
const LONGEST_MS = 31 * 86_400_000;

/** Arguments: now, owner, the limits, then id, value, bytes and milliseconds to live of each entry. */
export const ADD = `${COMMON}
local now, owner = tonumber(ARGV[1]), ARGV[2]
local number = sum('number')
if number ~= redis.call('ZCARD', EXPIRY) or number ~= redis.call('HLEN', ENTRIES) then
  for _, id in ipairs(redis.call('ZRANGE', EXPIRY, 0, -1)) do redis.call('DEL', base .. 'v:' .. id) end
  for _, id in ipairs(redis.call('HKEYS', ENTRIES)) do redis.call('DEL', base .. 'v:' .. id) end
  redis.call('DEL', EXPIRY, ENTRIES, USE)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now, 'LIMIT', 0, ${EXPIRED})) do drop(id) end
local bytes, count = 0, 0
for i = 6, #ARGV, 4 do
  drop(ARGV[i])
  bytes, count = bytes + tonumber(ARGV[i + 2]), count + 1
end
if sum('bytes') + bytes > tonumber(ARGV[3]) then return 1 end
if sum('number') + count > tonumber(ARGV[4]) then return 2 end
if sum('of:' .. owner) + count > tonumber(ARGV[5]) then return 3 end
for i = 6, #ARGV, 4 do
  local id, ttl = ARGV[i], tonumber(ARGV[i + 3])
  redis.call('SET', base .. 'v:' .. id, ARGV[i + 1], 'PX', ARGV[i + 3])
  redis.call('ZADD', EXPIRY, now + ttl, id)
  redis.call('HSET', ENTRIES, id, ARGV[i + 2] .. ' ' .. ARGV[1] .. ' ' .. owner)
end
redis.call('HINCRBY', USE, 'bytes', bytes)
redis.call('HINCRBY', USE, 'number', count)
redis.call('HINCRBY', USE, 'of:' .. owner, count)
for _, key in ipairs({EXPIRY, ENTRIES, USE}) do redis.call('PEXPIRE', key, ${LONGEST_MS}) end
return 0
`;

/** Returns the values of ids. Arguments: the ids. */
export const GET = `${COMMON}
local values = {}
for i, id in ipairs(ARGV) do values[i] = redis.call('GET', base .. 'v:' .. id) end
return values
`;

/** Removes entries. Arguments: their ids. */
export const REMOVE = `${COMMON}
for _, id in ipairs(ARGV) do drop(id) end
return 0
`;

/** Returns a page of the hash `entries`. Argument: the cursor. */
export const LIST = `${COMMON}
return redis.call('HSCAN', ENTRIES, ARGV[1], 'COUNT', 500)
`;
