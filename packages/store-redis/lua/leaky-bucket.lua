-- Leaky bucket: a queue that drains at an even pace. The twin of core's leaky-bucket.ts.
--
-- Parameters  capacity, parts of a unit, parts that drain each ms, longest delay in ms (-1: any)
-- State       layout 6: the backlog after the last charge, that charge's time, the parts of a unit of the backlog (below 0
--             where it is a debt, which is not cut to the capacity), when it has drained
local layout, state_size, fields = 6, 29, '>BI7i7i7i7'

-- The backlog now, and the state: zeros where there is no text of one. The last says whether there is a state.
local function load(key, policy)
  local unit, flow = policy[2], policy[3]
  local full = policy[1] * unit
  local value = read(key, layout, state_size)
  if not value then return 0, 0, 0, 0, 0, false end
  local _, stored, time, stored_unit, empty_at = unpack(fields, value)
  local backlog, since = 0, now - time
  local exists = now < empty_at and stored_unit ~= 0 and (since >= 0 or -since <= ceil(full / flow))
  if exists then
    local most = stored_unit < 0 and max(full, deepest) or full
    -- A product above 2^53 is rounded, and more than there is to drain all the same.
    local drained = since > 0 and since * flow or 0
    backlog = max(min(rescale(stored, math.abs(stored_unit), unit), most) - drained, 0)
  end
  return backlog, stored, time, stored_unit, empty_at, exists
end

local function decide(key, policy, cost, commit)
  local capacity, unit, flow, longest = policy[1], policy[2], policy[3], policy[4]
  local full = capacity * unit
  if longest < 0 then longest = math.huge end
  local backlog, stored, time, stored_unit, empty_at = load(key, policy)
  local at = backlog > 0 and time > now and time or now
  -- The wait is the queue's own: what a clock that stepped back adds is in the times of retry and reset.
  local drain = ceil(backlog / flow)
  if backlog > 0 then drain = min(drain, empty_at - at) end
  local allowed = cost <= capacity and cost * unit <= full - backlog and drain <= longest
  local delay = allowed and drain or 0
  local ahead = at - now
  if allowed and commit then
    backlog = backlog + cost * unit
    drain = ceil(backlog / flow)
    write(key, pack(fields, layout, backlog, at, unit, at + drain), ahead + drain)
  end
  local remaining = (drain > longest or backlog > full) and 0 or floor((full - backlog) / unit)
  local retry = 0
  if cost > capacity then
    retry = -1
  elseif cost > remaining then
    local over = backlog - (full - cost * unit)
    local place = over > 0 and min(ceil(over / flow), drain) or 0
    retry = ahead + max(place, drain - longest, 0)
  end
  local state = wants_state and not (allowed and commit) and { stored, time, stored_unit, empty_at } or nil
  return allowed, remaining, retry, backlog == 0 and 0 or ahead + drain, delay, ahead, state
end

local function settle(key, policy, _, reserved, cost)
  -- A place passes with its turn: nothing is given back.
  if cost <= reserved then return 0 end
  local unit, flow = policy[2], policy[3]
  local full = policy[1] * unit
  -- The state keeps its own time and parts, so it changes by as much for every policy.
  local _, stored, time, stored_unit, stored_empty_at, exists = load(key, policy)
  if not exists then stored, time, stored_unit, stored_empty_at = 0, now, unit, now end
  local parts = math.abs(stored_unit)
  local room = max(min(max(full, deepest) - stored, deepest), 0)
  local units = min(change_of(reserved, cost), floor(room / parts), floor(deepest / unit))
  if units == 0 then return 0 end
  -- A debt stays one, and what passes the capacity becomes one; what another policy has let in, and was above it before, does not.
  local backlog = stored + units * parts
  local debt = stored_unit < 0 or rescale(stored, parts, unit) <= full and rescale(backlog, parts, unit) > full
  local function empty_at(amount, owed) return time + ceil((owed and amount or min(amount, full)) / flow) end
  local own = parts == unit and stored_empty_at == empty_at(stored, stored_unit < 0)
  local over = over_at(own, empty_at(backlog, debt), stored_empty_at, ceil(units * unit / flow))
  write(key, pack(fields, layout, backlog, time, debt and -parts or parts, over), over - now)
  return units * parts, parts
end

return 4, decide, settle
