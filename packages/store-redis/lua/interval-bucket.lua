-- Token bucket by interval: tokens come in at each whole `every` after the last refill. The twin of core's interval-bucket.ts.
--
-- Parameters  capacity, refill, every in ms
-- State       layout 5: the tokens after the last charge (below 0 in debt), the last refill before it, when the bucket is full
local layout, state_size, fields = 5, 22, '>Bi7i7i7'

-- As few as a debt leaves: the refills that pay it off come before 2^52 ms have passed.
local function fewest(policy)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  return min(capacity - min(floor(deepest / every) * refill, deepest), 0)
end

-- Stored tokens as this policy counts them.
local function tokens_of(stored, policy)
  return stored < 0 and max(stored, fewest(policy)) or min(stored, policy[1])
end

-- When the refills that come after the last one have filled the bucket.
local function end_of(policy, tokens, last)
  return last + ceil((policy[1] - tokens) / policy[2]) * policy[3]
end

local function is_own(policy, stored, last, full_at)
  return full_at == end_of(policy, stored, last)
end

-- The tokens now, how many refills have come since the state's last one, and the state: the last numbers are nil where there is none.
local function load(key, policy)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local value = read(key, layout, state_size)
  if not value then return capacity, -1 end
  local _, stored, last, full_at = unpack(fields, value)
  local count, since = -1, now - last
  -- A product above 2^53 is rounded, and more than there is room for all the same.
  if now < full_at and (since >= 0 or -since <= ceil(capacity / refill) * every) then
    count = since > 0 and floor(since / every) or 0
  end
  return count < 0 and capacity or min(capacity, tokens_of(stored, policy) + count * refill), count, stored, last, full_at
end

local function decide(key, policy, cost, commit)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local tokens, count, stored, stored_last, stored_full_at = load(key, policy)
  local last = tokens == capacity and now or stored_last + count * every
  local allowed = cost <= tokens
  local full_at = now
  if allowed and commit then
    tokens = tokens - cost
    full_at = end_of(policy, tokens, last)
    local over = end_once_charged(count < 0 or is_own(policy, stored, stored_last, stored_full_at), full_at, stored_full_at)
    write(key, pack(fields, layout, tokens, last, over), over - now)
  elseif tokens < capacity then
    -- A state that other policies have charged may end before this one's bucket would be full.
    full_at = min(end_of(policy, tokens, last), stored_full_at)
  end
  local retry = 0
  if cost > capacity then
    retry = -1
  elseif cost > tokens then
    retry = min(last + ceil((cost - tokens) / refill) * every, full_at) - now
  end
  local state
  if wants_state and not (allowed and commit) then
    state = stored and { stored, stored_last, 1, stored_full_at } or { 0, 0, 0, 0 }
  end
  return allowed, max(tokens, 0), retry, tokens < capacity and full_at - now or 0, 0, max(last - now, 0), state
end

local function settle(key, policy, charged_at, reserved, cost)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  -- The state keeps its own time, so it changes by as much for every policy.
  local tokens, count, stored, last, stored_full_at = load(key, policy)
  local exists = count >= 0
  if not exists then stored, last, stored_full_at = capacity, now, now end
  local own = is_own(policy, stored, last, stored_full_at)
  if cost > reserved then
    local units = max(min(change_of(reserved, cost), min(stored, capacity) - fewest(policy)), 0)
    if units == 0 then return 0 end
    stored = stored - units
    local over = end_once_settled(own, end_of(policy, stored, last), stored_full_at, ceil(units / refill) * every)
    write(key, pack(fields, layout, stored, last, over), over - now)
    return units
  end
  -- A charge after the refill that follows the last charge is of a state that a clock's jump made void.
  if not exists or charged_at - last >= every then return 0 end
  -- Refills lie at last + k * every: those after the charge have put something in already.
  local since = max(ceil((last + count * every - charged_at) / every), 0)
  local missing = capacity - tokens
  local back = min(given(reserved, cost, capacity, 1, since * refill), missing, deepest)
  if back == 0 then return 0 end
  if own and back == missing then
    call('DEL', key)
  else
    stored = stored + back
    local over = end_once_settled(own, end_of(policy, stored, last), stored_full_at, 0)
    write(key, pack(fields, layout, stored, last, over), over - now)
  end
  return -back
end

return 3, decide, settle
