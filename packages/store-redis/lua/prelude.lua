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
-- Returns the server's time in microseconds and, unless that is past ARGV[2], the answers of the steps, in one flat list.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, tonumber = redis.call, pcall, tonumber
local byte, format, pack, unpack = string.byte, string.format, struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local time = call('TIME')
local server_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local server_ms = floor(server_us / 1000)
if server_ms > tonumber(ARGV[2]) then return { server_us } end

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

-- Each check has an instant: the server's microseconds at the start of the run, and the number of its key in the run. Before each
-- state stands the instant of the check that made it, in seven bytes. So a charge is of the state under its key if its instant is not
-- before that; otherwise it was of an earlier state, which was reset, evicted or has expired.
local birth_format, birth_size = '>I7', 7
-- The number of the key at hand, and what stands before the state that was read last; nil without a state. Algorithms make it nil
-- where the state that was read counts no more: the next charge begins another one.
local check, birth

-- The state under a key: a byte that tells its layout and numbers of seven bytes, after its birth (unpack it from `first` on).
-- nil where there is no state, or a text of another layout: what an older version or somebody else wrote counts as no state. A key
-- of another type is an error.
local first = birth_size + 1
local function read(key, layout, size)
  local value = call('GET', key)
  birth = nil
  if not value or #value ~= birth_size + size or byte(value, first) ~= layout then return nil end
  birth = value:sub(1, birth_size)
  return value
end

-- Keeps a state until it is the same as none, `reset_ms` from now, and no shorter.
local function write(key, value, reset_ms)
  call('SET', key, (birth or pack(birth_format, server_us + check)) .. value, 'PX', ttl(reset_ms))
end

-- Settlements, as core's debt.ts knows them: what exact arithmetic goes up to, and how deep a log and a bucket may go.
local largest, deepest = 9007199254740991, 4503599627370496

-- What a settlement is to change: in a bucket, and in a window.
local function change_of(reserved, cost)
  return max(-deepest, min(cost - reserved, deepest))
end

local function window_change_of(reserved, cost)
  return max(63 - largest, min(cost - reserved, largest - 63))
end

-- How many units may be missing where `amount` come every `every` ms.
local function most_missing(amount, every)
  return min(floor(deepest / every) * amount, deepest)
end

-- The units that a sliding counter's count stands for: a negative one is a debt, others are cut to the limit.
local function counted(count, limit)
  if count < 0 then return -count end
  return count > limit and limit or count
end

-- Such a count after so many more units were charged, or below 0 given back: see core's sliding-window-counter.ts.
local function settled(count, change, limit)
  local units = math.abs(count) + change
  return units > 0 and (count < 0 or change > 0 and units > limit) and -units or units
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

-- A bucket's state keeps the largest quota and the largest amount of the plans that charged it: see core's shared.ts. A plan is
-- { quota, parts of a unit, parts that flow each ms, what divided both }.
local function gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

local function divisor_of(quota, amount, every)
  if quota * every <= 70368744177664 then return 1 end
  local divisor = gcd(amount, every)
  return quota * (every / divisor) <= deepest and divisor or every
end

local function is_own(plan, quota, amount)
  return quota == plan[1] and amount == plan[3] * plan[4]
end

-- The parts of a unit of a state.
local function shared_unit(plan, quota, amount)
  if is_own(plan, quota, amount) then return plan[2] end
  local every = plan[2] * plan[4]
  return every / divisor_of(quota, amount, every)
end

-- The time in milliseconds that a number of parts of a state takes.
local function shared_takes(plan, quota, amount, parts)
  if is_own(plan, quota, amount) then return ceil(parts / plan[3]) end
  local every = plan[2] * plan[4]
  local divisor = divisor_of(quota, amount, every)
  return amount % divisor == 0 and ceil(parts / (amount / divisor)) or ceil(parts / amount) * every
end

-- How many parts a debt may lack.
local function shared_deepest(plan, quota, amount)
  if is_own(plan, quota, amount) then return deepest end
  local every = plan[2] * plan[4]
  return amount % divisor_of(quota, amount, every) == 0 and deepest or most_missing(amount, every)
end

-- The time in which what a state misses comes in; nil where nothing is missing, or somebody has tampered with the state.
local function shared_rest(plan, quota, amount, missing)
  if missing <= 0 or missing > deepest then return nil end
  if is_own(plan, quota, amount) then return ceil(missing / plan[3]) end
  if quota < 1 or amount < 1 or amount > deepest or quota * shared_unit(plan, quota, amount) > deepest then return nil end
  local rest = shared_takes(plan, quota, amount, missing)
  return rest <= deepest and rest or nil
end

-- The numbers of a state that a plan charges; without a quota it begins one.
local function noted_numbers(plan_quota, plan_amount, quota, amount)
  if not quota then return plan_quota, plan_amount end
  return max(quota, plan_quota), max(amount, plan_amount)
end

local function noted(plan, quota, amount)
  return noted_numbers(plan[1], plan[3] * plan[4], quota, amount)
end

-- What flows under a plan from `time` on until now, in such parts; rounded down.
local function flowed(plan, parts, time)
  return now > time and rescale((now - time) * plan[3], plan[2], parts) or 0
end

-- How far ahead of the clock a state may be that this plan is to charge.
local function shared_span(plan, quota, amount)
  quota, amount = noted(plan, quota, amount)
  return shared_takes(plan, quota, amount, quota * shared_unit(plan, quota, amount))
end

local function fastest_flow(plan, amount)
  return max(plan[3], ceil(amount / plan[4]))
end
