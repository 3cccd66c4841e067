-- Sliding window counter with one bucket, the library's default policy, without loops and tables. The twin of core's
-- sliding-window-counter.ts; sliding-window-counter.lua does the same for any number of buckets.
--
-- State       layout 2: the start of the newest counted window, its count, and that of the window before it
local layout, state_size, fields = 2, 22, '>Bi7i7i7'

-- Returns the state as of now: the current window's start, its count, and that of the window before it.
local function load(key)
  local value = read(key, state_size)
  local start, newest, oldest
  if value then
    local found
    found, start, newest, oldest = unpack(fields, value, first)
    local away = now - start
    if found ~= layout then
      value = nil
    elseif away < windowMs then
      if -away > windowMs then value = nil end
    elseif away < 2 * windowMs then
      start, newest, oldest = start + windowMs, 0, newest
    else
      value = nil
    end
  end
  if not value then
    start, newest, oldest = floor(now / windowMs) * windowMs, 0, 0
    origin = nil
  end
  return start, newest, oldest
end

local function decide(key, cost, commit)
  local start, newest, oldest = load(key)
  local ahead = start - now

  -- The units of a count. Negative counts are debts; others are clamped to the limit.
  local newer, leaving = newest, oldest
  if newer > limit then newer = limit elseif newer < 0 then newer = -newer end
  if leaving > limit then leaving = limit elseif leaving < 0 then leaving = -leaving end
  local rest = ahead < 0 and windowMs + ahead or windowMs
  local remaining = limit - floor(leaving * rest / windowMs) - newer
  local allowed = cost <= remaining
  if allowed and commit then
    newer = newer + cost
    remaining = remaining - cost
    -- Keep the sign: a debt stays a debt.
    local count = newest < 0 and -newer or newer
    -- Within a window the expiry does not change.
    if newest ~= 0 and steady then
      put('SETRANGE', key, '15', pack('>i7', count))
    else
      write(key, pack(fields, layout, start, count, oldest), ahead + 2 * windowMs)
    end
    newest = count
  elseif remaining < 0 then
    remaining = 0
  end

  local reset = newest ~= 0 and ahead + 2 * windowMs or oldest ~= 0 and ahead + windowMs or 0
  local retry = 0
  if cost > limit then
    retry = -1
  elseif cost > remaining then
    -- In this window the older count leaves, in the next one the newer; `room` is the weight that it may still have.
    local room, ends = limit - cost - newer, ahead + windowMs
    if room < 0 then leaving, room, ends = newer, limit - cost, ends + windowMs end
    retry = ends + 1 - ceil((room + 1) * windowMs / leaving)
  end
  local state = wants_state and not (allowed and commit) and { [START] = start, [COUNTS] = newest, [COUNTS + 1] = oldest } or nil
  return allowed, remaining, retry, reset, 0, ahead > 0 and ahead or 0, state
end

local function settle(key, charged_at, reserved, cost)
  local change, age, before = 0, 0, nil
  local start, newest, oldest = load(key)
  if reserved ~= 0 and origin then
    -- A refund or a settlement does not change the stored start. When the next window begins, the older count no longer counts. It stays,
    -- because it counts again if the clock steps back.
    local stored, _, older = unpack('>i7i7i7', origin, first + 1)
    if stored < start then start, newest, oldest, before = stored, oldest, 0, older end
    age = ceil((start - charged_at) / windowMs)
  end
  local count = age == 0 and newest or age == 1 and oldest or 0
  if count ~= 0 or reserved == 0 then
    change = change_of(reserved, cost)
    change = max(-abs(count), min(change, max(floor(largest / max(windowMs, 2)) - abs(newest) - abs(oldest), 0)))
  end
  if change ~= 0 then
    count = settled(count, change, limit)
    if age == 0 then newest = count else oldest = count end
    -- A window that no longer counts is not state either.
    if newest == 0 and oldest == 0 then
      call('DEL', key)
    else
      write(key, pack(fields, layout, start, newest, before or oldest), start - now + (newest ~= 0 and 2 or 1) * windowMs)
    end
  end
  return change, 1
end
