-- Smooth token bucket and GCRA: a level that rises continuously. The twin of core's smooth-bucket.ts.
--
-- Parameters  quota, parts of a unit, parts that flow in each ms
-- State       layout 4: the level after the last charge (below 0 in debt), that charge's time, the parts of a unit of the level, when the bucket is full
local layout, state_size, fields = 4, 29, '>Bi7i7I7i7'

-- A stored level in this policy's parts.
local function level_of(stored, stored_unit, unit, full)
  local level = rescale(stored, stored_unit, unit)
  return level < 0 and max(level, min(full - deepest, 0)) or level
end

-- When a level has risen to the full.
local function end_of(policy, level, time)
  return time + ceil((policy[1] * policy[2] - level) / policy[3])
end

local function is_own(policy, stored, time, stored_unit, full_at)
  return stored_unit == policy[2] and full_at == end_of(policy, stored, time)
end

-- The level now, and the state: zeros where there is no text of one. The last says whether there is a state.
local function load(key, policy)
  local unit, flow = policy[2], policy[3]
  local full = policy[1] * unit
  local value = read(key, layout, state_size)
  if not value then return full, 0, 0, 0, 0, false end
  local _, stored, time, stored_unit, full_at = unpack(fields, value)
  local level, since = full, now - time
  -- What somebody has tampered with is no state.
  local sound = stored_unit > 0 and stored_unit <= largest and stored <= largest and stored >= -largest
  local exists = sound and now < full_at and (since >= 0 or -since <= ceil(full / flow))
  if exists then
    level = level_of(stored, stored_unit, unit, full)
    -- A product above 2^53 is rounded, and more than there is room for all the same.
    local gained = since > 0 and since * flow or 0
    level = gained >= full - level and full or level + gained
  end
  return level, stored, time, stored_unit, full_at, exists
end

local function decide(key, policy, cost, commit)
  local quota, unit, flow = policy[1], policy[2], policy[3]
  local full = quota * unit
  local level, stored, time, stored_unit, stored_full_at, exists = load(key, policy)
  local at = level < full and time > now and time or now
  local allowed = cost <= quota and cost * unit <= level
  local full_at = at
  if allowed and commit then
    level = level - cost * unit
    full_at = end_of(policy, level, at)
    local own = not exists or is_own(policy, stored, time, stored_unit, stored_full_at)
    local over = end_once_charged(own, full_at, stored_full_at)
    write(key, pack(fields, layout, level, at, unit, over), over - now)
  elseif level < full then
    -- A state that other policies have charged may end before this one's bucket would be full.
    full_at = min(end_of(policy, level, at), stored_full_at)
  end
  local remaining = level < 0 and 0 or floor(level / unit)
  local retry = 0
  if cost > quota then
    retry = -1
  elseif cost > remaining then
    retry = min(at + ceil((cost * unit - level) / flow), full_at) - now
  end
  local state = wants_state and not (allowed and commit) and { stored, time, stored_unit, stored_full_at } or nil
  return allowed, remaining, retry, level < full and full_at - now or 0, 0, at - now, state
end

local function settle(key, policy, charged_at, reserved, cost)
  local quota, unit, flow = policy[1], policy[2], policy[3]
  local full = quota * unit
  -- The state keeps its own time and parts, so it changes by as much for every policy.
  local level, stored, time, parts, stored_full_at, exists = load(key, policy)
  if not exists then stored, time, parts, stored_full_at = full, now, unit, now end
  local own = is_own(policy, stored, time, parts, stored_full_at)
  if cost > reserved then
    local most = max(min(stored - min(full - deepest, 0), deepest), 0)
    local units = min(change_of(reserved, cost), floor(most / parts), floor(deepest / unit))
    if units == 0 then return 0 end
    stored = stored - units * parts
    local over = end_once_settled(own, end_of(policy, stored, time), stored_full_at, ceil(units * unit / flow))
    write(key, pack(fields, layout, stored, time, parts, over), over - now)
    return units * parts, parts
  end
  -- A charge after the last one is of a state that a clock's jump made void.
  if not exists or charged_at > time then return 0 end
  local missing = full - level
  local due = given(reserved, cost, quota, unit, (max(now, time) - charged_at) * flow)
  local back = min(rescale(min(due, missing), unit, parts), deepest, largest - stored)
  if back == 0 then return 0 end
  if own and back == missing then
    call('DEL', key)
  else
    local over = end_once_settled(own, end_of(policy, stored + back, time), stored_full_at, 0)
    write(key, pack(fields, layout, stored + back, time, parts, over), over - now)
  end
  return -back, parts
end

return 3, decide, settle
