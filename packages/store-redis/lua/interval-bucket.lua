-- Token bucket by interval: tokens come in at each whole `every` after the last refill. The twin of core's interval-bucket.ts.
--
-- Parameters  capacity, refill, every in ms
-- State       layout 5: the tokens after the last charge, the last refill before it, when the bucket is full
local layout, state_size, fields = 5, 22, '>BI7i7i7'

-- The tokens now, how many refills have come since the state's last one, and the state: the last numbers are nil where there is none.
local function load(key, policy)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local value = read(key, layout, state_size)
  if not value then return capacity, -1 end
  local _, stored, last, full_at = unpack(fields, value)
  local count, since = -1, now - last
  -- More time than the span refills more than there is room for: it need not be cut.
  if now < full_at and (since >= 0 or -since <= ceil(capacity / refill) * every) then
    count = since > 0 and floor(since / every) or 0
  end
  return count < 0 and capacity or min(capacity, stored + count * refill), count, stored, last, full_at
end

local function decide(key, policy, cost, commit)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local tokens, count, stored, stored_last, stored_full_at = load(key, policy)
  local last = tokens == capacity and now or stored_last + count * every
  local allowed = cost <= tokens
  local full_at = now
  if allowed and commit then
    tokens = tokens - cost
    full_at = last + ceil((capacity - tokens) / refill) * every
    write(key, pack(fields, layout, tokens, last, full_at), full_at - now)
  elseif tokens < capacity then
    -- A state written under another policy is as good as none when that policy said so, or earlier.
    full_at = min(last + ceil((capacity - tokens) / refill) * every, stored_full_at)
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
  return allowed, tokens, retry, tokens < capacity and full_at - now or 0, 0, max(last - now, 0), state
end

local function refund(key, policy, charged_at, cost)
  local capacity, refill, every = policy[1], policy[2], policy[3]
  local tokens, count, stored, stored_last, stored_full_at = load(key, policy)
  if tokens == capacity then return 0 end
  -- A charge after the refill that follows the last charge is of a state that a clock's jump made void.
  if charged_at - stored_last >= every then return 0 end
  local last = stored_last + count * every
  -- Refills lie at last - k * every: those after the charge have put something in already.
  local since = charged_at >= last and 0 or ceil((last - charged_at) / every)
  local back = min(min(cost, capacity) - since * refill, capacity - tokens)
  if back <= 0 then return 0 end
  if tokens + back == capacity then
    call('DEL', key)
  else
    stored = stored + back
    local full_at = min(stored_last + ceil((capacity - stored) / refill) * every, stored_full_at)
    write(key, pack(fields, layout, stored, stored_last, full_at), full_at - now)
  end
  return back
end

return 3, decide, refund
