-- The beginning of the script: the arguments that concern the whole batch, and what the algorithms share.
--
-- One run decides a batch of steps, in order, each atomically (Redis runs nothing else meanwhile). Portable Lua 5.1: no flags,
-- no modules beside `struct`. Numbers are whole, below 2^53, and become text by '%.0f' or as redis.call writes them (17 digits):
-- tostring keeps 14 digits.
--
-- KEYS     one for each check, in the order of the steps
-- ARGV[1]  the time in milliseconds since the epoch, or '' for this server's own
-- ARGV[2]  not after: the server's time in milliseconds from which this batch must do nothing, for nobody waits for it any more
-- ARGV[3]  '1' where a rejection shall hand over the state it saw, so that the client can repeat it
-- ARGV[4]  how many policies follow: each the number of its algorithm and its parameters
-- ARGV...  the steps, to the end: see batch.lua
--
-- Returns the server's time in milliseconds and, unless that is past ARGV[2], the answers of the steps, in one flat list.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, tonumber = redis.call, pcall, tonumber
local byte, format, pack, unpack = string.byte, string.format, struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local time = call('TIME')
local server_ms = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
if server_ms > tonumber(ARGV[2]) then return { server_ms } end

-- By a clock that is handed over Redis does not expire keys, so they stay a minute longer by its own, and from each write anew.
local now, steady, longer_ms = server_ms, true, 0
if ARGV[1] ~= '' then now, steady, longer_ms = tonumber(ARGV[1]), false, 60000 end
local wants_state = ARGV[3] == '1'

-- A time to live as text: most keys of a batch share one.
local ttl_ms, ttl_text
local function ttl(reset_ms)
  if reset_ms ~= ttl_ms then ttl_ms, ttl_text = reset_ms, format('%.0f', max(reset_ms, 1) + longer_ms) end
  return ttl_text
end

-- The state under a key, a byte that tells its layout and numbers of seven bytes; nothing where there is none, or a text that is
-- no state of this layout: what an older version or somebody else wrote counts as none. A key of another type is an error.
local function read(key, layout, size)
  local value = call('GET', key)
  if not value or #value ~= size or byte(value) ~= layout then return nil end
  return value
end

-- Keeps a state until it is the same as none, `reset_ms` from now, and no shorter.
local function write(key, value, reset_ms)
  call('SET', key, value, 'PX', ttl(reset_ms))
end

-- Settlements, as core's debt.ts knows them: what exact arithmetic goes up to, and how deep a log and a bucket may go.
local largest, deepest = 9007199254740991, 4503599627370496

-- What a settlement is to change.
local function change_of(reserved, cost)
  return max(-deepest, min(cost - reserved, deepest))
end

-- When a bucket's state ends, once a policy has charged it, or settled a charge: see core's end.ts.
local function end_once_charged(own, own_end, stored_end)
  return own and own_end or max(own_end + 1, stored_end)
end

local function end_once_settled(own, own_end, stored_end, later_ms)
  return own and own_end or min(stored_end + later_ms, now + deepest)
end

-- The units that a sliding counter's count stands for: a negative one is a debt, others are cut to the limit.
local function counted(count, limit)
  if count < 0 then return -count end
  return count > limit and limit or count
end

-- Such a count once so many units more, or below 0 less, were taken: see core's sliding-window-counter.ts.
local function settled(count, change, limit)
  local units = math.abs(count) + change
  return units > 0 and (count < 0 or count <= limit and units > limit) and -units or units
end

-- What a bucket gets back of a charge that cost less than was reserved, in parts.
local function given(reserved, cost, quota, unit, flowed)
  local cut = max(reserved - quota, 0)
  return max((reserved - cut) * unit - flowed, 0) - max(max(cost - cut, 0) * unit - flowed, 0)
end

-- Parts counted in units of `from` parts, in units of `to`: see core's rate.ts.
local function rescale(parts, from, to)
  if from == to then return parts end
  local whole = floor(parts / from)
  local product = (parts - whole * from) * to
  return whole * to + (product <= largest and floor(product / from) or 0)
end
