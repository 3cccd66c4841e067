-- Interval token bucket: tokens are added at each whole `every` after the last refill. The twin of core's interval-bucket.ts.
--
-- State       layout 5: the tokens after the last charge (negative: a debt), the last refill before it, the state's capacity, its refill
local layout, state_size, fields = 5, 29, '>Bi7i7i7i7'

-- The milliseconds until a number of tokens has been added.
local function takes(tokens, refill, every)
  return ceil(tokens / refill) * every
end

-- Returns the tokens now, the time at which the state's bucket is full (nil: no state), the refills since the state's last one, and
-- the stored numbers (zeros if nothing is stored).
local function load(key, policy)
  local capacity, refill, every = policy.capacity, policy.refill, policy.everyMs
  local value = read(key, layout, state_size)
  if not value then return capacity, nil, 0, 0, 0, 0, 0 end
  local _, stored, last, most, fastest = unpack(fields, value, first)
  local rest, since = takes(most - stored, fastest, every), now - last
  -- Ignore values that no charge can have written.
  if most < 1 or most > deepest or fastest < 1 or fastest > deepest or rest <= 0 or rest > deepest then
    return capacity, nil, 0, 0, 0, 0, 0
  end
  local end_ms = last + rest
  if now >= end_ms or since < 0 and -since > takes(max(most, capacity), max(fastest, refill), every) then
    return capacity, nil, 0, stored, last, most, fastest
  end
  local count = since > 0 and floor(since / every) or 0
  -- A product above 2^53 is inexact, but still more than the bucket holds.
  return min(stored + count * refill, capacity), end_ms, count, stored, last, most, fastest
end

local function decide(key, policy, cost, commit)
  local capacity, refill, every = policy.capacity, policy.refill, policy.everyMs
  local tokens, end_ms, count, stored, stored_last, most, fastest = load(key, policy)
  local allowed = cost <= tokens
  local state = wants_state and not (allowed and commit) and { [TOKENS] = stored, [LAST] = stored_last, [CAPACITY] = most, [REFILL] = fastest } or nil
  most, fastest = noted_numbers(capacity, refill, end_ms and most, fastest)
  -- The refill schedule restarts only when the largest plan's bucket is full.
  local last = end_ms and tokens < most and stored_last + count * every or now
  if allowed and commit then
    if not end_ms then birth = nil end
    tokens = tokens - cost
    end_ms = last + takes(most - tokens, fastest, every)
    write(key, pack(fields, layout, tokens, last, most, fastest), end_ms - now)
  end
  -- The state may end before this plan's bucket would be full.
  local full_at = tokens < capacity and min(last + takes(capacity - tokens, refill, every), end_ms) or now
  local retry = 0
  if cost > capacity then
    retry = -1
  elseif cost > tokens then
    retry = min(last + takes(cost - tokens, refill, every), full_at) - now
  end
  return allowed, max(tokens, 0), retry, full_at - now, 0, max(last - now, 0), state
end

local function settle(key, policy, charged_at, reserved, cost)
  local capacity, refill, every = policy.capacity, policy.refill, policy.everyMs
  local tokens, exists, count, stored, last, most, fastest = load(key, policy)
  local more = cost > reserved
  -- A charge later than the next refill belongs to a state that a clock jump made void.
  if not more and (not exists or charged_at - last >= every) then return 0 end
  if not exists then stored, last, most, fastest = capacity, now, capacity, refill end
  local change
  if more then
    -- Refill up to now before adding the debt. Otherwise overflow of a full bucket under a faster plan would pay it.
    stored, last = min(stored + count * refill, most), last + count * every
    change = -max(min(change_of(reserved, cost), most_missing(fastest, every) - (most - stored)), 0)
  else
    -- Refills happen at last + k * every. Those after the charge have already returned a part of it.
    local since = max(ceil((last + count * every - charged_at) / every), 0)
    change = min(refund_of(reserved, cost, capacity, 1, since * max(fastest, refill)), capacity - tokens, most - stored)
  end
  if change == 0 then return 0 end
  stored = stored + change
  local end_ms = last + takes(most - stored, fastest, every)
  if not more and end_ms <= max(now, last) then
    call('DEL', key)
  else
    write(key, pack(fields, layout, stored, last, most, fastest), end_ms - now)
  end
  return -change
end
