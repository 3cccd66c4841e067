-- Leaky bucket: a queue that drains at an even pace. The twin of core's leaky-bucket.ts.
--
-- Parameters  capacity, parts of a unit, parts that drain each ms, longest delay in ms (-1: any)
-- State       layout 6: the backlog after the last charge, that charge's time, the parts of a unit of the backlog (below 0
--             where it is a debt), when it has drained. The backlog may be more than the queue holds: what larger ones have let
--             in, of which this one counts what it holds, or a debt, of which it counts all.
local layout, state_size, fields = 6, 29, '>BI7i7i7i7'

-- When what the queue holds of a backlog, or a debt, has drained.
local function end_of(policy, backlog, debt, time)
  return time + ceil((debt and backlog or min(backlog, policy[1] * policy[2])) / policy[3])
end

local function is_own(policy, stored, time, stored_unit, empty_at)
  return math.abs(stored_unit) == policy[2] and empty_at == end_of(policy, stored, stored_unit < 0, time)
end

-- What this queue counts of the backlog now, all of it, and the state: zeros where there is no text of one. The last says whether
-- there is a state.
local function load(key, policy)
  local unit, flow = policy[2], policy[3]
  local full = policy[1] * unit
  local value = read(key, layout, state_size)
  if not value then return 0, 0, 0, 0, 0, 0, false end
  local _, stored, time, stored_unit, empty_at = unpack(fields, value)
  local backlog, whole, since = 0, 0, now - time
  -- What somebody has tampered with is no state.
  local sound = stored_unit ~= 0 and stored_unit <= largest and stored_unit >= -largest and stored <= largest and empty_at >= time
  local exists = sound and now < empty_at and (since >= 0 or -since <= ceil(full / flow))
  if exists then
    whole = min(rescale(stored, math.abs(stored_unit), unit), max(full, deepest))
    -- A product above 2^53 is rounded, and more than there is to drain all the same.
    local drained = since > 0 and since * flow or 0
    backlog = max((stored_unit < 0 and whole or min(whole, full)) - drained, 0)
    whole = max(whole - drained, 0)
  end
  return backlog, whole, stored, time, stored_unit, empty_at, exists
end

local function decide(key, policy, cost, commit)
  local capacity, unit, flow, longest = policy[1], policy[2], policy[3], policy[4]
  local full = capacity * unit
  if longest < 0 then longest = math.huge end
  local backlog, whole, stored, time, stored_unit, empty_at, exists = load(key, policy)
  local at = whole > 0 and time > now and time or now
  -- The wait is the queue's own: what a clock that stepped back adds is in the times of retry and reset.
  local drain = ceil(backlog / flow)
  if backlog > 0 then drain = min(drain, empty_at - at) end
  local allowed = cost <= capacity and cost * unit <= full - backlog and drain <= longest
  local delay = allowed and drain or 0
  local ahead, over = at - now, empty_at
  if allowed and commit then
    whole = whole + cost * unit
    backlog = min(whole, full)
    drain = ceil(backlog / flow)
    over = end_once_charged(not exists or is_own(policy, stored, time, stored_unit, empty_at), at + drain, empty_at)
    write(key, pack(fields, layout, whole, at, unit, over), over - now)
  end
  local remaining = (drain > longest or backlog > full) and 0 or floor((full - backlog) / unit)
  local retry = 0
  if cost > capacity then
    retry = -1
  elseif cost > remaining then
    local deficit = backlog - (full - cost * unit)
    local place = deficit > 0 and min(ceil(deficit / flow), drain) or 0
    retry = ahead + max(place, drain - longest, 0)
  end
  local reset = whole == 0 and 0 or ahead + min(ceil(whole / flow), over - at)
  local state = wants_state and not (allowed and commit) and { stored, time, stored_unit, empty_at } or nil
  return allowed, remaining, retry, reset, delay, ahead, state
end

local function settle(key, policy, _, reserved, cost)
  -- A place passes with its turn: nothing is given back.
  if cost <= reserved then return 0 end
  local unit, flow = policy[2], policy[3]
  local full = policy[1] * unit
  -- The state keeps its own time and parts, so it changes by as much for every policy.
  local _, _, stored, time, stored_unit, stored_empty_at, exists = load(key, policy)
  if not exists then stored, time, stored_unit, stored_empty_at = 0, now, unit, now end
  local parts = math.abs(stored_unit)
  local room = max(min(max(full, deepest) - stored, deepest), 0)
  local units = min(change_of(reserved, cost), floor(room / parts), floor(deepest / unit))
  if units == 0 then return 0 end
  -- What passes the capacity becomes a debt, and a debt stays one.
  local backlog = stored + units * parts
  local debt = stored_unit < 0 or rescale(backlog, parts, unit) > full
  local own = is_own(policy, stored, time, stored_unit, stored_empty_at)
  local over = end_once_settled(own, end_of(policy, backlog, debt, time), stored_empty_at, ceil(units * unit / flow))
  write(key, pack(fields, layout, backlog, time, debt and -parts or parts, over), over - now)
  return units * parts, parts
end

return 4, decide, settle
