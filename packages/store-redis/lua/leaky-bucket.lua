-- Leaky bucket: a queue that drains at an even pace. The twin of core's leaky-bucket.ts.
--
-- Parameters  capacity, parts of a unit, parts that drain each ms, what divided both, longest delay in ms (-1: any)
-- State       layout 6: the backlog after the last charge, that charge's time; the quota and the amount of the state. The backlog may
--             be more than a queue holds: what a larger one has let in, or a debt. That queue is full until as much has drained.
local layout, state_size, fields = 6, 29, '>Bi7i7i7i7'

-- Backlogs are rounded up.
local function rescale_up(parts, from, to)
  return from == to and parts or -rescale(-parts, from, to)
end

-- The backlog now in this policy's parts; when the state's own queue is empty, nil where there is no state; and the state, zeros
-- where there is no text of one.
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
  local backlog = rescale_up(stored, parts, policy[2])
  -- A product above 2^53 is rounded, and more than there is to drain all the same.
  if since > 0 then backlog = max(backlog - since * policy[3], 0) end
  return backlog, end_ms, stored, time, quota, amount
end

local function decide(key, policy, cost, commit)
  local capacity, unit, flow, longest = policy[1], policy[2], policy[3], policy[5]
  local full = capacity * unit
  if longest < 0 then longest = math.huge end
  local backlog, end_ms, stored, time, quota, amount = load(key, policy)
  local at = end_ms and time > now and time or now
  -- The wait is the queue's own: what a clock that stepped back adds is in the times of retry and reset. The state may end before
  -- the backlog would have drained at this plan's pace.
  local drain = backlog == 0 and 0 or min(ceil(backlog / flow), end_ms - at)
  local allowed = cost <= capacity and cost * unit <= full - backlog and drain <= longest
  local state = wants_state and not (allowed and commit) and { stored, time, quota, amount } or nil
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
  -- A place passes with its turn: nothing is given back.
  if cost <= reserved then return 0 end
  local _, exists, stored, time, quota, amount = load(key, policy)
  -- The state keeps its own parts, so it changes by as much for every plan.
  if not exists then
    quota, amount = noted(policy)
    stored, time = 0, now
  end
  local parts = shared_unit(policy, quota, amount)
  -- What drains until now has gone before the debt: under a faster plan, the time of an empty queue must not pay it.
  stored, time = max(stored - flowed(policy, parts, time), 0), max(now, time)
  local units = max(min(change_of(reserved, cost), floor((shared_deepest(policy, quota, amount) - stored) / parts)), 0)
  if units == 0 then return 0 end
  stored = stored + units * parts
  write(key, pack(fields, layout, stored, time, quota, amount), time + shared_takes(policy, quota, amount, stored) - now)
  return units * parts, parts
end

return 5, decide, settle
