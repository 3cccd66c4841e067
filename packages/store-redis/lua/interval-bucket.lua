-- Token bucket by interval: tokens come in at each whole `every` after the last refill. The twin of core's interval-bucket.ts.
--
-- Parameters  capacity, refill, every in ms
-- State       layout 5: the tokens after the last charge (below 0 in debt), the last refill before it; the capacity and the refill of the state
local layout, state_size, fields = 5, 29, '>Bi7i7i7i7'

-- The time in milliseconds in which a number of tokens comes in.
local function takes(tokens, refill, every)
  return ceil(tokens / refill) * every
end

-- The tokens now, when the state's own bucket is full (nil where there is no state), how many refills have come since the state's
-- last one, and the state: zeros where there is no text of one.
local function load(key, policy)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local value = read(key, layout, state_size)
  if not value then return capacity, nil, 0, 0, 0, 0, 0 end
  local _, stored, last, most, fastest = unpack(fields, value, first)
  local rest, since = takes(most - stored, fastest, every), now - last
  -- What somebody has tampered with is no state.
  if most < 1 or most > deepest or fastest < 1 or fastest > deepest or rest <= 0 or rest > deepest then
    return capacity, nil, 0, 0, 0, 0, 0
  end
  local end_ms = last + rest
  if now >= end_ms or since < 0 and -since > takes(max(most, capacity), max(fastest, refill), every) then
    return capacity, nil, 0, stored, last, most, fastest
  end
  local count = since > 0 and floor(since / every) or 0
  -- A product above 2^53 is rounded, and more than there is room for all the same.
  return min(stored + count * refill, capacity), end_ms, count, stored, last, most, fastest
end

local function decide(key, policy, cost, commit)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local tokens, end_ms, count, stored, stored_last, most, fastest = load(key, policy)
  local allowed = cost <= tokens
  local state = wants_state and not (allowed and commit) and { stored, stored_last, most, fastest } or nil
  most, fastest = noted_numbers(capacity, refill, end_ms and most, fastest)
  -- Only where no plan's bucket lacks anything do the refills begin anew.
  local last = end_ms and tokens < most and stored_last + count * every or now
  if allowed and commit then
    if not end_ms then birth = nil end
    tokens = tokens - cost
    end_ms = last + takes(most - tokens, fastest, every)
    write(key, pack(fields, layout, tokens, last, most, fastest), end_ms - now)
  end
  -- The state may end before this plan's own bucket would be full.
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
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local tokens, exists, count, stored, last, most, fastest = load(key, policy)
  local more = cost > reserved
  -- A charge after the refill that follows the last charge is of a state that a clock's jump made void.
  if not more and (not exists or charged_at - last >= every) then return 0 end
  if not exists then stored, last, most, fastest = capacity, now, capacity, refill end
  local change
  if more then
    -- What comes in until now is there before the debt: under a faster plan, what a full bucket lost must not pay it.
    stored, last = min(stored + count * refill, most), last + count * every
    change = -max(min(change_of(reserved, cost), most_missing(fastest, every) - (most - stored)), 0)
  else
    -- Refills lie at last + k * every: those after the charge have put something in already.
    local since = max(ceil((last + count * every - charged_at) / every), 0)
    change = min(given(reserved, cost, capacity, 1, since * max(fastest, refill)), capacity - tokens, most - stored)
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

return 3, decide, settle
