-- Smooth token bucket and GCRA: a level that rises continuously. The twin of core's smooth-bucket.ts.
--
-- State       layout 4: the level after the last charge (negative: a debt), that charge's time, the state's quota, its amount
local layout, state_size, fields = 4, 29, '>Bi7i7i7i7'

-- Returns the level now in this policy's parts, the time at which the state's bucket is full (nil: no state), and the stored numbers
-- (zeros if nothing is stored).
local function load(key, policy)
  local quota, unit, flow = policy.quota, policy.unit, policy.flow
  local full = quota * unit
  local value = read(key, layout, state_size)
  if not value then return full, nil, 0, 0, 0, 0 end
  local _, stored, time, largest_quota, amount = unpack(fields, value, first)
  local parts = shared_unit(policy, largest_quota, amount)
  local rest = shared_rest(policy, largest_quota, amount, largest_quota * parts - stored)
  if not rest then return full, nil, 0, 0, 0, 0 end
  local end_ms, since = time + rest, now - time
  if now >= end_ms or since < 0 and -since > shared_span(policy, largest_quota, amount) then
    return full, nil, stored, time, largest_quota, amount
  end
  local level = rescale(stored, parts, unit)
  -- A product above 2^53 is inexact, but still more than the bucket holds.
  local gained = since > 0 and since * flow or 0
  level = (level >= full or gained >= full - level) and full or level + gained
  return level, end_ms, stored, time, largest_quota, amount
end

local function decide(key, policy, cost, commit)
  local quota, unit, flow = policy.quota, policy.unit, policy.flow
  local full = quota * unit
  local level, end_ms, stored, time, largest_quota, amount = load(key, policy)
  local at = end_ms and time > now and time or now
  local allowed = cost <= quota and cost * unit <= level
  local state = wants_state and not (allowed and commit) and { [LEVEL] = stored, [TIME] = time, [QUOTA] = largest_quota, [AMOUNT] = amount } or nil
  if allowed and commit then
    if not end_ms then birth = nil end
    level = level - cost * unit
    largest_quota, amount = noted(policy, end_ms and largest_quota, amount)
    local parts = shared_unit(policy, largest_quota, amount)
    stored = rescale(level, unit, parts)
    end_ms = at + shared_takes(policy, largest_quota, amount, largest_quota * parts - stored)
    write(key, pack(fields, layout, stored, at, largest_quota, amount), end_ms - now)
  end
  -- The state may end before this plan's bucket would be full.
  local full_at = level < full and min(at + ceil((full - level) / flow), end_ms) or now
  local remaining = level < 0 and 0 or floor(level / unit)
  local retry = 0
  if cost > quota then
    retry = -1
  elseif cost > remaining then
    retry = min(at + ceil((cost * unit - level) / flow), full_at) - now
  end
  return allowed, remaining, retry, full_at - now, 0, at - now, state
end

local function settle(key, policy, charged_at, reserved, cost)
  local quota, unit, flow = policy.quota, policy.unit, policy.flow
  local full = quota * unit
  local level, exists, stored, time, largest_quota, amount = load(key, policy)
  local more = cost > reserved
  -- A charge later than the state's last one belongs to a state that a clock jump made void.
  if not more and (not exists or charged_at > time) then return 0 end
  -- Change the stored parts, so that every plan sees the same change.
  if not exists then
    largest_quota, amount = noted(policy)
    stored, time = full, now
  end
  local parts = shared_unit(policy, largest_quota, amount)
  local most = largest_quota * parts
  -- Refill up to now before adding the debt. Otherwise overflow of a full bucket under a faster plan would pay it.
  if more then stored, time = min(stored + flowed(policy, parts, time), most), max(now, time) end
  local room = most - stored
  local change
  if more then
    change = -max(min(change_of(reserved, cost), floor((shared_deepest(policy, largest_quota, amount) - room) / parts)), 0) * parts
  else
    local at = max(now, time)
    local due = refund_of(reserved, cost, quota, unit, (at - charged_at) * fastest_flow(policy, amount))
    change = min(rescale(min(due, full - level), unit, parts), room)
  end
  if change == 0 then return 0 end
  local end_ms = time + shared_takes(policy, largest_quota, amount, room - change)
  if not more and end_ms <= max(now, time) then
    call('DEL', key)
  else
    write(key, pack(fields, layout, stored + change, time, largest_quota, amount), end_ms - now)
  end
  return -change, parts
end
