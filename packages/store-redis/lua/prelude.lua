-- The first part of the script: arguments of the whole batch, and helpers that the algorithms share.
--
-- One run executes a batch of steps in order and atomically. Portable Lua 5.1: no flags, no module except `struct`. Numbers are whole
-- and below 2^53. Convert them with '%.0f' or let redis.call do it (17 digits); tostring keeps only 14 digits.
--
-- KEYS     the keys of the states, in the order of the steps; then the keys of the blocks, in the same order: see batch.lua
-- ARGV[1]  the time in milliseconds since the epoch, or '' for this server's own
-- ARGV[2]  not after: past this server time in milliseconds the batch does nothing, because its callers have timed out
-- ARGV[3]  '1' to return the state with each rejection, for the client's deny cache
-- ARGV[4]  the number of keys. As many keys of blocks follow, in the same order; on a Cluster none do, and their names are derived: a script
--          with several keys fails while their slot moves
-- ARGV[5]  the number of policies that follow, each as its algorithm's number and the parameters that core names
-- ARGV...  the steps: see batch.lua
--
-- Between this file and batch.lua stand the algorithms, the twins of core's, each defining `decide` and `settle` (see src/script.ts).
-- A policy has core's names for its parameters. Core's names for the cells are constants: the places of the cells in a state that is
-- returned, as in { [START] = start }.
--
-- Returns a flat list: the server's time in microseconds and, unless that is past ARGV[2], the replies of the steps.
local KEYS, ARGV = KEYS, ARGV
local call, pcall, tonumber = redis.call, pcall, tonumber
local spread = unpack
local byte, format, pack, unpack = string.byte, string.format, struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local time = call('TIME')
local server_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local server_ms = floor(server_us / 1000)
if server_ms > tonumber(ARGV[2]) then return { server_us } end

-- Redis does not expire keys by an injected clock. So with one, keys live a minute longer, and each write renews their expiry.
local now, steady, longer_ms = server_ms, true, 0
if ARGV[1] ~= '' then now, steady, longer_ms = tonumber(ARGV[1]), false, 60000 end
-- 'whole' while a key is inspected: then the state is returned always, and of a log up to a thousand of its newest entries.
local wants_state = ARGV[3] == '1'

-- A time to live as a string, memoised: most keys of a batch share one.
local ttl_ms, ttl_text
local function ttl(reset_ms)
  if reset_ms ~= ttl_ms then ttl_ms, ttl_text = reset_ms, format('%.0f', max(reset_ms, 1) + longer_ms) end
  return ttl_text
end

-- Each check has an instant: the server's microseconds at the start of the run plus the index of its key. A stored value begins with
-- the instant of the check that created the state (its birth, seven bytes). A charge belongs to the stored state if the charge's
-- instant is not earlier; else its state was reset, evicted or has expired.
local birth_format, birth_size = '>I7', 7
-- The index of the current key, and the birth of the state that was read last (nil: no state). Algorithms set it to nil if the state
-- no longer counts: then the next charge begins a new state.
local check, birth

-- Reads a value: its birth, then from `first` on a layout byte and numbers of seven bytes. Returns nil if there is none or its layout
-- differs: values of older versions and foreign values count as no state. A key of another type is an error.
local first = birth_size + 1
local function read(key, layout, size)
  local value = call('GET', key)
  birth = nil
  if not value or #value ~= birth_size + size or byte(value, first) ~= layout then return nil end
  birth = value:sub(1, birth_size)
  return value
end

-- Writes a state that expires when it is the same as no state, `reset_ms` from now.
local function write(key, value, reset_ms)
  call('SET', key, (birth or pack(birth_format, server_us + check)) .. value, 'PX', ttl(reset_ms))
end

-- Bounds of settlements, as in core's debt.ts: the largest exact integer, and the deepest debt of a log or a bucket.
local largest, deepest = 9007199254740991, 4503599627370496

-- The change that a settlement asks for: of a bucket, of a window.
local function change_of(reserved, cost)
  return max(-deepest, min(cost - reserved, deepest))
end

local function window_change_of(reserved, cost)
  return max(63 - largest, min(cost - reserved, largest - 63))
end

-- The most units that may be missing if `amount` are added every `every` ms.
local function most_missing(amount, every)
  return min(floor(deepest / every) * amount, deepest)
end

-- The units of a sliding counter's count. Negative counts are debts; others are clamped to the limit.
local function counted(count, limit)
  if count < 0 then return -count end
  return count > limit and limit or count
end

-- A sliding counter's count after a change (negative: a refund): see core's sliding-window-counter.ts.
local function settled(count, change, limit)
  local units = math.abs(count) + change
  return units > 0 and (count < 0 or change > 0 and units > limit) and -units or units
end

-- The refund for a lower real cost in a bucket, in parts: the unexpired reservation minus the unexpired real cost.
local function refund_of(reserved, cost, quota, unit, flowed)
  local cut = max(reserved - quota, 0)
  return max((reserved - cut) * unit - flowed, 0) - max(max(cost - cut, 0) * unit - flowed, 0)
end

-- Converts parts from `from` per unit to `to` per unit: see core's rate.ts.
local function rescale(parts, from, to)
  if from == to then return parts end
  local whole = floor(parts / from)
  local product = (parts - whole * from) * to
  return whole * to + (product <= largest and floor(product / from) or 0)
end

-- A bucket's state keeps the largest quota and the largest amount of all plans that charged it: see core's shared.ts. A plan is
-- a policy: it has a quota, the parts of a unit, the parts that flow each ms, and the common divisor of both.
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
  return quota == plan.quota and amount == plan.flow * plan.divisor
end

-- The parts per unit of a state.
local function shared_unit(plan, quota, amount)
  if is_own(plan, quota, amount) then return plan.unit end
  local every = plan.unit * plan.divisor
  return every / divisor_of(quota, amount, every)
end

-- The milliseconds in which a number of a state's parts flows.
local function shared_takes(plan, quota, amount, parts)
  if is_own(plan, quota, amount) then return ceil(parts / plan.flow) end
  local every = plan.unit * plan.divisor
  local divisor = divisor_of(quota, amount, every)
  return amount % divisor == 0 and ceil(parts / (amount / divisor)) or ceil(parts / amount) * every
end

-- The deepest debt, in parts.
local function shared_deepest(plan, quota, amount)
  if is_own(plan, quota, amount) then return deepest end
  local every = plan.unit * plan.divisor
  return amount % divisor_of(quota, amount, every) == 0 and deepest or most_missing(amount, every)
end

-- The milliseconds until the missing parts have flowed in; nil if nothing is missing or the numbers cannot be valid.
local function shared_rest(plan, quota, amount, missing)
  if missing <= 0 or missing > deepest then return nil end
  if is_own(plan, quota, amount) then return ceil(missing / plan.flow) end
  if quota < 1 or amount < 1 or amount > deepest or quota * shared_unit(plan, quota, amount) > deepest then return nil end
  local rest = shared_takes(plan, quota, amount, missing)
  return rest <= deepest and rest or nil
end

-- The quota and amount of a state after a plan's charge. Without a quota, the plan begins the state.
local function noted_numbers(plan_quota, plan_amount, quota, amount)
  if not quota then return plan_quota, plan_amount end
  return max(quota, plan_quota), max(amount, plan_amount)
end

local function noted(plan, quota, amount)
  return noted_numbers(plan.quota, plan.flow * plan.divisor, quota, amount)
end

-- What has flowed under a plan since `time`, in units of `parts` parts, rounded down.
local function flowed(plan, parts, time)
  return now > time and rescale((now - time) * plan.flow, plan.unit, parts) or 0
end

-- How far ahead of the clock a state may be when this plan charges it.
local function shared_span(plan, quota, amount)
  quota, amount = noted(plan, quota, amount)
  return shared_takes(plan, quota, amount, quota * shared_unit(plan, quota, amount))
end

local function fastest_flow(plan, amount)
  return max(plan.flow, ceil(amount / plan.divisor))
end
