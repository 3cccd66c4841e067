-- Smooth token bucket and GCRA: a level that rises continuously. The twin of core's smooth-bucket.ts.
--
-- State       layout 4: the level after the last charge (negative: a debt), that charge's time, the state's quota, its amount
local layout, state_size, fields = 4, 29, '>Bi7i7i7i7'

-- Returns the level now in this policy's parts, the time at which the state's bucket is full (nil: no state), and the stored numbers
-- (zeros if nothing is stored).
local function load(key)
  local full = quota * unit
  local level, end_ms, stored, time, most, amount = full, nil, 0, 0, 0, 0
  local value = read(key, state_size)
  local found, was, at, its_most, its_amount
  if value then found, was, at, its_most, its_amount = unpack(fields, value, first) end
  if found == layout then
    local parts = shared_unit(its_most, its_amount)
    local rest = shared_rest(its_most, its_amount, its_most * parts - was)
    if rest then
      stored, time, most, amount = was, at, its_most, its_amount
      end_ms = shared_end(most, amount, time, rest)
      if end_ms then
        local since = now - time
        level = rescale(stored, parts, unit)
        -- A product above 2^53 is inexact, but still more than the bucket holds.
        local gained = since > 0 and since * flow or 0
        level = (level >= full or gained >= full - level) and full or level + gained
      end
    end
  end
  return level, end_ms, stored, time, most, amount
end

local function decide(key, cost, commit)
  local full = quota * unit
  local level, end_ms, stored, time, most, amount = load(key)
  local at = end_ms and time > now and time or now
  local allowed = cost <= quota and cost * unit <= level
  local state = wants_state and not (allowed and commit) and { [LEVEL] = stored, [TIME] = time, [QUOTA] = most, [AMOUNT] = amount } or nil
  if allowed and commit then
    if not end_ms then origin = nil end
    level = level - cost * unit
    most, amount = noted(end_ms and most, amount)
    local parts = shared_unit(most, amount)
    stored = rescale(level, unit, parts)
    local takes = shared_takes(most, amount, most * parts - stored)
    end_ms = at + takes
    write(key, pack(fields, layout, stored, at, most, amount), end_ms - now)
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

-- The parts that flow each millisecond, under this plan or the state's, whichever is faster.
local function fastest_flow(amount)
  return max(flow, ceil(amount / divisor))
end

local function settle(key, charged_at, reserved, cost)
  local level, exists, stored, time, most, amount = load(key)
  local more = cost > reserved
  local change, parts = 0, 1
  -- A charge later than the state's last one belongs to a state that a clock jump made void.
  if more or exists and charged_at <= time then
    -- Change the stored parts, so that every plan sees the same change.
    if not exists then
      most, amount = noted()
      stored, time, origin = quota * unit, now, nil
    end
    parts = shared_unit(most, amount)
    -- Refill up to now before adding the debt. Otherwise overflow of a full bucket under a faster plan would pay it.
    if more then
      local flowed = flowed_since(time, parts)
      stored, time = min(stored + flowed, most * parts), max(now, time)
    end
    local room = most * parts - stored
    if more then
      local depth = shared_deepest(most, amount)
      change = change_of(reserved, cost)
      change = -max(min(change, floor((depth - room) / parts)), 0) * parts
    else
      local fastest = fastest_flow(amount)
      local due = refund_of(reserved, cost, quota, unit, (max(now, time) - charged_at) * fastest)
      due = rescale(min(due, quota * unit - level), unit, parts)
      change = min(due, room)
    end
    if change ~= 0 then
      local takes = shared_takes(most, amount, room - change)
      local end_ms = time + takes
      if not more and end_ms <= max(now, time) then
        call('DEL', key)
      else
        write(key, pack(fields, layout, stored + change, time, most, amount), end_ms - now)
      end
    end
  end
  return -change, parts
end
