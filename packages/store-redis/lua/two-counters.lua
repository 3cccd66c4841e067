-- Sliding window counter with one bucket, the library's default policy, without loops and tables. The twin of core's
-- sliding-window-counter.ts; sliding-window-counter.lua does the same for any number of buckets.
--
-- State       layout 2: the start of the newest counted window, its count, and that of the window before it
local layout, state_size, fields = 2, 22, '>Bi7i7i7'

local function decide(key, policy, cost, commit)
  local limit, window = policy.limit, policy.windowMs
  local value = read(key, layout, state_size)
  -- The state as of now: the current window's start, its count, and that of the window before it.
  local _, start, newest, oldest
  if value then
    _, start, newest, oldest = unpack(fields, value, first)
    local away = now - start
    if away < window then
      if -away > window then value = nil end
    elseif away < 2 * window then
      start, newest, oldest = start + window, 0, newest
    else
      value = nil
    end
  end
  if not value then
    start, newest, oldest = floor(now / window) * window, 0, 0
    birth = nil
  end
  local ahead = start - now

  -- `counted`, inlined.
  local newer, leaving = newest, oldest
  if newer > limit then newer = limit elseif newer < 0 then newer = -newer end
  if leaving > limit then leaving = limit elseif leaving < 0 then leaving = -leaving end
  local rest = ahead < 0 and window + ahead or window
  local remaining = limit - floor(leaving * rest / window) - newer
  local allowed = cost <= remaining
  if allowed and commit then
    newer = newer + cost
    remaining = remaining - cost
    -- Keep the sign: a debt stays a debt.
    local count = newest < 0 and -newer or newer
    -- Within a window the expiry does not change.
    if newest ~= 0 and steady then
      call('SETRANGE', key, '15', pack('>i7', count))
    else
      write(key, pack(fields, layout, start, count, oldest), ahead + 2 * window)
    end
    newest = count
  elseif remaining < 0 then
    remaining = 0
  end

  local reset = newest ~= 0 and ahead + 2 * window or oldest ~= 0 and ahead + window or 0
  local retry = 0
  if cost > limit then
    retry = -1
  elseif cost > remaining then
    -- In this window the older count leaves, in the next one the newer; `room` is the weight that it may still have.
    local room, ends = limit - cost - newer, ahead + window
    if room < 0 then leaving, room, ends = newer, limit - cost, ends + window end
    retry = ends + 1 - ceil((room + 1) * window / leaving)
  end
  local state = wants_state and not (allowed and commit) and { [START] = start, [COUNTS] = newest, [COUNTS + 1] = oldest } or nil
  return allowed, remaining, retry, reset, 0, ahead > 0 and ahead or 0, state
end

local function settle(key, policy, charged_at, reserved, cost)
  local limit, window = policy.limit, policy.windowMs
  local value = read(key, layout, state_size)
  if not value then return 0 end
  local _, start, newest, oldest = unpack(fields, value, first)
  local away = now - start
  if -away > window or away >= 2 * window then return 0 end
  -- Find which of the two windows was charged. When the next window begins, the older one no longer counts.
  local age, passed = ceil((start - charged_at) / window), away >= window
  if age < 0 or age > (passed and 0 or 1) then return 0 end
  local count = age == 0 and newest or oldest
  if count == 0 then return 0 end
  local others = math.abs(newest) + (passed and 0 or math.abs(oldest))
  local change = max(-math.abs(count), min(change_of(reserved, cost), max(floor(largest / window) - others, 0)))
  if change == 0 then return 0 end
  count = settled(count, change, limit)
  if age == 0 then newest = count else oldest = count end
  -- A window that no longer counts is not state either.
  if newest == 0 and (oldest == 0 or passed) then
    call('DEL', key)
  else
    write(key, pack(fields, layout, start, newest, oldest), (newest ~= 0 and 2 or 1) * window - away)
  end
  return change
end
