-- Interval token bucket: tokens are added at each whole `every` after the last refill. The twin of core's token-bucket.ts.
--
-- State       layout 5: the tokens after the last charge (negative: a debt), the last refill before it, the state's capacity, its refill
local layout, state_size, fields = 5, 29, '>Bi7i7i7i7'

-- The milliseconds until a number of tokens has been added, `each` at a time.
local function takes(tokens, each)
  return ceil(tokens / each) * everyMs
end

-- Returns the tokens now, the time at which the state's bucket is full (nil: no state), the refills since the state's last one, and
-- the stored numbers (zeros if nothing is stored).
local function load(key)
  local tokens, end_ms, count, stored, last, most, fastest = capacity, nil, 0, 0, 0, 0, 0
  local value = read(key, state_size)
  local found, its_tokens, its_last, its_most, its_fastest
  if value then found, its_tokens, its_last, its_most, its_fastest = unpack(fields, value, first) end
  -- Ignore values that no charge can have written.
  if found == layout and its_most >= 1 and its_most <= deepest and its_fastest >= 1 and its_fastest <= deepest then
    local rest = takes(its_most - its_tokens, its_fastest)
    local depth = most_missing(its_most, its_fastest, everyMs, 1)
    if rest > 0 and its_most - its_tokens <= depth then
      stored, last, most, fastest = its_tokens, its_last, its_most, its_fastest
      local since = now - last
      -- Whether another plan can have these numbers: see core's smooth-bucket.ts.
      local its_span = takes(most, fastest)
      local own_span = takes(capacity, refill)
      if its_span <= max(own_span, longest_debt) and now < last + rest then end_ms = last + rest end
      if since < 0 then
        local span = takes(max(most, capacity), max(fastest, refill))
        if -since > span then end_ms = nil end
      end
      if end_ms then
        if since > 0 then count = floor(since / everyMs) end
        -- A product above 2^53 is inexact, but still more than the bucket holds.
        tokens = stored + count * refill
        if tokens > capacity then tokens = capacity end
      end
    end
  end
  return tokens, end_ms, count, stored, last, most, fastest
end

local function decide(key, cost, commit)
  local tokens, end_ms, count, stored, stored_last, most, fastest = load(key)
  local allowed = cost <= tokens
  local state = wants_state and not (allowed and commit) and { [TOKENS] = stored, [LAST] = stored_last, [CAPACITY] = most, [REFILL] = fastest } or nil
  most, fastest = noted_numbers(capacity, refill, end_ms and most, fastest)
  -- The refill schedule restarts only when the largest plan's bucket is full.
  local last = end_ms and tokens < most and stored_last + count * everyMs or now
  if allowed and commit then
    if not end_ms then origin = nil end
    tokens = tokens - cost
    local rest = takes(most - tokens, fastest)
    end_ms = last + rest
    write(key, pack(fields, layout, tokens, last, most, fastest), end_ms - now)
  end
  -- The state may end before this plan's bucket would be full.
  local full_at = now
  if tokens < capacity then
    local rest = takes(capacity - tokens, refill)
    full_at = min(last + rest, end_ms)
  end
  local retry = 0
  if cost > capacity then
    retry = -1
  elseif cost > tokens then
    local rest = takes(cost - tokens, refill)
    retry = min(last + rest, full_at) - now
  end
  return allowed, tokens > 0 and tokens or 0, retry, full_at - now, 0, last > now and last - now or 0, state
end

local function settle(key, charged_at, reserved, cost)
  local tokens, exists, count, stored, last, most, fastest = load(key)
  local more = cost > reserved
  local change = 0
  -- A charge later than the next refill belongs to a state that a clock jump made void.
  if more or exists and charged_at - last < everyMs then
    if not exists then stored, last, most, fastest, origin = capacity, now, capacity, refill, nil end
    if more then
      -- Refill up to now before adding the debt. Otherwise overflow of a full bucket under a faster plan would pay it.
      stored, last = min(stored + count * refill, most), last + count * everyMs
      local depth = most_missing(most, fastest, everyMs, 1)
      change = change_of(reserved, cost)
      change = -max(min(change, depth - (most - stored)), 0)
    else
      -- Refills happen at last + k * every. Those after the charge have already returned a part of it.
      local since = max(ceil((last + count * everyMs - charged_at) / everyMs), 0)
      change = refund_of(reserved, cost, capacity, 1, since * max(fastest, refill))
      change = min(change, capacity - tokens, most - stored)
    end
    if change ~= 0 then
      stored = stored + change
      local rest = takes(most - stored, fastest)
      local end_ms = last + rest
      if not more and end_ms <= max(now, last) then
        call('DEL', key)
      else
        write(key, pack(fields, layout, stored, last, most, fastest), end_ms - now)
      end
    end
  end
  return -change, 1
end
