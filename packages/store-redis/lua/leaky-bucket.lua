-- Leaky bucket: a queue that drains at a constant rate. The twin of core's leaky-bucket.ts.
--
-- State       layout 6: the backlog after the last charge, that charge's time, the state's quota, its amount. A larger plan or a debt
--             can make the backlog exceed a queue: that queue is full until the excess has drained.
local layout, state_size, fields = 6, 29, '>Bi7i7i7i7'

-- Backlogs are rounded up.
local function rescale_up(parts, from, to)
  local rescaled = rescale(-parts, from, to)
  return -rescaled
end

-- Returns the backlog now in this policy's parts, the time at which the state's queue is empty (nil: no state), and the stored numbers
-- (zeros if nothing is stored).
local function load(key)
  local backlog, end_ms, stored, time, most, amount = 0, nil, 0, 0, 0, 0
  local value = read(key, state_size)
  local found, was, at, its_most, its_amount
  if value then found, was, at, its_most, its_amount = unpack(fields, value, first) end
  if found == layout then
    local parts = shared_unit(its_most, its_amount)
    local rest = shared_rest(its_most, its_amount, was)
    if rest then
      stored, time, most, amount = was, at, its_most, its_amount
      end_ms = shared_end(most, amount, time, rest)
      if end_ms then
        local since = now - time
        backlog = rescale_up(stored, parts, unit)
        -- A product above 2^53 is inexact, but still more than the backlog.
        if since > 0 then backlog = max(backlog - since * flow, 0) end
      end
    end
  end
  return backlog, end_ms, stored, time, most, amount
end

local function decide(key, cost, commit)
  local full, longest = quota * unit, maxDelayMs
  if longest < 0 then longest = huge end
  local backlog, end_ms, stored, time, most, amount = load(key)
  local at = end_ms and time > now and time or now
  -- The delay leaves out a clock's step back; retry and reset include it. The state may end before the backlog would have
  -- drained at this plan's pace.
  local drain = backlog == 0 and 0 or min(ceil(backlog / flow), end_ms - at)
  local allowed = cost <= quota and cost * unit <= full - backlog and drain <= longest
  local state = wants_state and not (allowed and commit) and { [LEVEL] = stored, [TIME] = time, [QUOTA] = most, [AMOUNT] = amount } or nil
  local delay = allowed and drain or 0
  if allowed and commit then
    if not end_ms then origin = nil end
    backlog = backlog + cost * unit
    most, amount = noted(end_ms and most, amount)
    local parts = shared_unit(most, amount)
    stored = rescale_up(backlog, unit, parts)
    local empties = shared_takes(most, amount, stored)
    write(key, pack(fields, layout, stored, at, most, amount), at + empties - now)
    drain = min(ceil(backlog / flow), empties)
  end
  local remaining = (drain > longest or backlog > full) and 0 or floor((full - backlog) / unit)
  local ahead, retry = at - now, 0
  if cost > quota then
    retry = -1
  elseif cost > remaining then
    local over = backlog - (full - cost * unit)
    local place = over > 0 and min(ceil(over / flow), drain) or 0
    retry = ahead + max(place, drain - longest, 0)
  end
  return allowed, remaining, retry, backlog == 0 and 0 or ahead + drain, delay, ahead, state
end

local function settle(key, _, reserved, cost)
  local change, parts = 0, 1
  -- A queue refunds nothing: a place is used up at its turn.
  if cost > reserved then
    local _, exists, stored, time, most, amount = load(key)
    -- Change the stored parts, so that every plan sees the same change.
    if not exists then
      most, amount = noted()
      stored, time, origin = 0, now, nil
    end
    parts = shared_unit(most, amount)
    -- Drain up to now before adding the debt. Otherwise the time of an empty queue under a faster plan would pay it.
    local flowed = flowed_since(time, parts)
    stored, time = max(stored - flowed, 0), max(now, time)
    local depth = shared_deepest(most, amount)
    local units = change_of(reserved, cost)
    units = max(min(units, floor((depth - stored) / parts)), 0)
    if units ~= 0 then
      change = units * parts
      stored = stored + change
      local takes = shared_takes(most, amount, stored)
      write(key, pack(fields, layout, stored, time, most, amount), time + takes - now)
    end
  end
  return change, parts
end
