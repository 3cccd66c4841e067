-- Leaky bucket: a queue that drains at a constant rate. The twin of core's leaky-bucket.ts.
--
-- State       layout 6: the backlog after the last charge, that charge's time, the state's quota, its amount. A larger plan or a debt
--             can make the backlog exceed a queue: that queue is full until the excess has drained.
local layout, state_size, fields = 6, 29, '>Bi7i7i7i7'

-- Backlogs are rounded up.
local function rescale_up(parts, from, to)
  return from == to and parts or -rescale(-parts, from, to)
end

-- Returns the backlog now in this policy's parts, the time at which the state's queue is empty (nil: no state), and the stored numbers
-- (zeros if nothing is stored).
local function load(key, policy)
  local value = read(key, layout, state_size)
  if not value then return 0, nil, 0, 0, 0, 0 end
  local _, stored, time, quota, amount = unpack(fields, value, first)
  local parts = shared_unit(policy, quota, amount)
  local rest = shared_rest(policy, quota, amount, stored)
  if not rest then return 0, nil, 0, 0, 0, 0 end
  local end_ms, since = time + rest, now - time
  if now >= end_ms or since < 0 and -since > shared_span(policy, quota, amount) then
    return 0, nil, stored, time, quota, amount
  end
  local backlog = rescale_up(stored, parts, policy.unit)
  -- A product above 2^53 is inexact, but still more than the backlog.
  if since > 0 then backlog = max(backlog - since * policy.flow, 0) end
  return backlog, end_ms, stored, time, quota, amount
end

local function decide(key, policy, cost, commit)
  local capacity, unit, flow, longest = policy.quota, policy.unit, policy.flow, policy.maxDelayMs
  local full = capacity * unit
  if longest < 0 then longest = math.huge end
  local backlog, end_ms, stored, time, quota, amount = load(key, policy)
  local at = end_ms and time > now and time or now
  -- The delay leaves out a clock's step back; retry and reset include it. The state may end before the backlog would have
  -- drained at this plan's pace.
  local drain = backlog == 0 and 0 or min(ceil(backlog / flow), end_ms - at)
  local allowed = cost <= capacity and cost * unit <= full - backlog and drain <= longest
  local state = wants_state and not (allowed and commit) and { [LEVEL] = stored, [TIME] = time, [QUOTA] = quota, [AMOUNT] = amount } or nil
  local delay = allowed and drain or 0
  if allowed and commit then
    if not end_ms then birth = nil end
    backlog = backlog + cost * unit
    quota, amount = noted(policy, end_ms and quota, amount)
    stored = rescale_up(backlog, unit, shared_unit(policy, quota, amount))
    local empties = shared_takes(policy, quota, amount, stored)
    write(key, pack(fields, layout, stored, at, quota, amount), at + empties - now)
    drain = min(ceil(backlog / flow), empties)
  end
  local remaining = (drain > longest or backlog > full) and 0 or floor((full - backlog) / unit)
  local ahead, retry = at - now, 0
  if cost > capacity then
    retry = -1
  elseif cost > remaining then
    local over = backlog - (full - cost * unit)
    local place = over > 0 and min(ceil(over / flow), drain) or 0
    retry = ahead + max(place, drain - longest, 0)
  end
  return allowed, remaining, retry, backlog == 0 and 0 or ahead + drain, delay, ahead, state
end

local function settle(key, policy, _, reserved, cost)
  -- A queue refunds nothing: a place is used up at its turn.
  if cost <= reserved then return 0 end
  local _, exists, stored, time, quota, amount = load(key, policy)
  -- Change the stored parts, so that every plan sees the same change.
  if not exists then
    quota, amount = noted(policy)
    stored, time = 0, now
  end
  local parts = shared_unit(policy, quota, amount)
  -- Drain up to now before adding the debt. Otherwise the time of an empty queue under a faster plan would pay it.
  stored, time = max(stored - flowed(policy, parts, time), 0), max(now, time)
  local units = max(min(change_of(reserved, cost), floor((shared_deepest(policy, quota, amount) - stored) / parts)), 0)
  if units == 0 then return 0 end
  stored = stored + units * parts
  write(key, pack(fields, layout, stored, time, quota, amount), time + shared_takes(policy, quota, amount, stored) - now)
  return units * parts, parts
end
