"""Atomic operations in Lua. They use the server's clock: those of the machines do not matter.

Times are milliseconds, written with three digits after the point: Lua's default number format would round
today's date to minutes.
"""

from __future__ import annotations

from typing import Final

from wireglot.stores.redis.pool import RedisScript

_NOW: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local function exact(number) return string.format('%.3f', number) end
local function whole(number) return string.format('%.0f', math.ceil(number)) end
"""

# A rate's state is the time at which its bucket will be empty.
_RATE: Final = """
local function filled(tat, amount, limit, window)
    local full = math.max(tat, now) + amount * window / limit
    return math.max(now, math.min(full, now + 2 * window))
end
local function write_rate(key, tat)
    if tat > now then
        redis.call('SET', key, exact(tat), 'PX', whole(tat - now))
    else
        redis.call('DEL', key)
    end
end
"""

# KEYS: one for each claim. ARGV: for each claim `rate` or `budget`, amount, limit, and the window or the end.
# Returns nothing, or the number of the claim with the longest wait and its milliseconds.
TAKE: Final = RedisScript(
    _NOW
    + _RATE
    + """
local state, denied, longest = {}, 0, 0
for at, key in ipairs(KEYS) do
    local kind, amount, limit, last = unpack(ARGV, at * 4 - 3, at * 4)
    amount, limit, last = tonumber(amount), tonumber(limit), tonumber(last)
    local value = state[key] or tonumber(redis.call('GET', key) or 0)
    local wait
    if kind == 'rate' then
        wait = value - now + math.min(0, amount * last / limit - last)
        state[key] = filled(value, amount, limit, last)
    else
        wait = value < limit and 0 or last - now
        state[key] = value + amount
    end
    if wait > longest then denied, longest = at, wait end
end
if denied > 0 then return {denied, exact(longest)} end
for at, key in ipairs(KEYS) do
    if ARGV[at * 4 - 3] == 'rate' then
        write_rate(key, state[key])
    else
        redis.call('INCRBY', key, ARGV[at * 4 - 2])
        redis.call('PEXPIREAT', key, ARGV[at * 4])
    end
end
return false
"""
)

# Like TAKE, but never denied. A budget that has not begun (it was evicted, the server was restarted) stays
# so: it will be seeded from the ledger.
SETTLE: Final = RedisScript(
    _NOW
    + _RATE
    + """
for at, key in ipairs(KEYS) do
    local kind, amount, limit, last = unpack(ARGV, at * 4 - 3, at * 4)
    if kind == 'rate' then
        local tat = tonumber(redis.call('GET', key) or 0)
        write_rate(key, filled(tat, tonumber(amount), tonumber(limit), tonumber(last)))
    elseif redis.call('EXISTS', key) == 1 then
        if redis.call('INCRBY', key, amount) < 0 then redis.call('SET', key, 0, 'KEEPTTL') end
    end
end
return false
"""
)

# Places are a sorted set by the time at which they become free.
ENTER: Final = RedisScript(
    _NOW
    + """
local key, holder, limit, stay = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', key, '-inf', exact(now))
if not redis.call('ZSCORE', key, holder) and redis.call('ZCARD', key) >= limit then return 0 end
redis.call('ZADD', key, exact(now + stay), holder)
local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
redis.call('PEXPIREAT', key, whole(last[2]))
return 1
"""
)

COOL: Final = RedisScript(
    _NOW
    + """
local key = KEYS[1]
for at = 1, #ARGV, 2 do
    redis.call('ZADD', key, 'GT', exact(now + tonumber(ARGV[at + 1])), ARGV[at])
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', exact(now))
local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
if last[2] then redis.call('PEXPIREAT', key, whole(last[2])) end
return false
"""
)

# Names and the milliseconds they have left. Read-only, since it is called often.
COOLING: Final = RedisScript(
    _NOW
    + """
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. exact(now), '+inf', 'WITHSCORES')
for at = 2, #found, 2 do found[at] = exact(found[at] - now) end
return found
"""
)

LOCK: Final = RedisScript(
    """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
)

UNLOCK: Final = RedisScript(
    """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return false
"""
)

# Uploads: names in a sorted set by their expiry, sizes in a hash; its field '' has the sum.
_DROP: Final = """
local function drop(shelf, sizes, name)
    redis.call('ZREM', shelf, name)
    local size = tonumber(redis.call('HGET', sizes, name) or 0)
    redis.call('HDEL', sizes, name)
    if size > 0 then redis.call('HINCRBY', sizes, '', string.format('%d', -size)) end
    return redis.call('UNLINK', name)
end
"""

KEEP: Final = RedisScript(
    _DROP
    + """
local shelf, sizes, name = KEYS[1], KEYS[2], KEYS[3]
local now, stay, most, size = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
drop(shelf, sizes, name)
for _, old in ipairs(redis.call('ZRANGEBYSCORE', shelf, '-inf', now, 'LIMIT', 0, 1000)) do
    drop(shelf, sizes, old)
end
local sum = redis.call('HINCRBY', sizes, '', size)
while sum > most do
    local oldest = redis.call('ZRANGE', shelf, 0, 0)[1]
    if not oldest then break end
    drop(shelf, sizes, oldest)
    sum = tonumber(redis.call('HGET', sizes, ''))
end
redis.call('ZADD', shelf, now + stay, name)
redis.call('HSET', sizes, name, size)
redis.call('SET', name, ARGV[5], 'PX', stay)
redis.call('PEXPIRE', shelf, stay)
redis.call('PEXPIRE', sizes, stay)
return false
"""
)

FORGET: Final = RedisScript(
    _DROP
    + """
local gone = 0
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if string.sub(name, 1, #ARGV[1]) == ARGV[1] then gone = gone + drop(KEYS[1], KEYS[2], name) end
end
return gone
"""
)
