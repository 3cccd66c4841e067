-- Sliding window counter: one count per sub-window; the oldest is weighted by the part of it that is still in the window, unless the
-- policy is strict. The twin of core's sliding-window-counter.ts.
--
-- State       layout 2: the start of the newest counted sub-window, its count, and those of the `buckets` before it, newest first
local layout, count_fields, zero = 2, '>i7', '\0\0\0\0\0\0\0'
local width = windowMs / buckets
-- A Lua function can return only some thousand values, so counts beyond a hundred are read one by one.
local fields = '>i7' .. rep('i7', min(buckets + 1, 100))

-- Returns the state as of now (the current sub-window's start, and the counts by age), the stored value, and its age in sub-windows
-- (`buckets` + 1 if nothing of it counts any more).
local function load(key)
  local cells, past = nil, buckets + 1
  local value = read(key, 15 + 7 * buckets)
  if value and byte(value, first) == layout then
    cells = { unpack(fields, value, first + 1) }
    for i = 102, buckets + 2 do cells[i] = unpack(count_fields, value, first + 7 * i - 6) end
    cells[buckets + 3] = nil
    local away = now - cells[START]
    if -away <= windowMs then past = away < width and 0 or min(floor(away / width), past) end
    if past > 0 and past <= buckets then
      cells[START] = cells[START] + past * width
      for i = COUNTS + buckets, COUNTS, -1 do cells[i] = i - past >= COUNTS and cells[i - past] or 0 end
    end
    -- The counts of a corrupted state may be too large to add up exactly.
    local sum = 0
    for i = COUNTS, COUNTS + buckets do sum = sum + abs(cells[i]) end
    if sum > largest then past = buckets + 1 end
  end
  if past > buckets then
    cells = { [START] = floor(now / width) * width }
    for i = COUNTS, COUNTS + buckets do cells[i] = 0 end
    value, origin = nil, nil
  end
  return cells, value, past
end

-- The units of a count. Negative counts are debts; others are clamped to the limit.
local function counted(count)
  local units = count
  if count < 0 then units = -count elseif count > limit then units = limit end
  return units
end

-- The time after which no count is in the window.
local function reset_of(cells)
  local reset, age = 0, 0
  while reset == 0 and age <= buckets do
    if cells[COUNTS + age] ~= 0 then reset = cells[START] - now + windowMs + (1 - age) * width end
    age = age + 1
  end
  return reset
end

-- The wait after which a rejected request passes. In each coming sub-window one count leaves the window; `room` is the weight that
-- it may still have. In a strict policy the request passes when all of that count has left.
local function retry_of(cells, newer, cost)
  local ahead, room = 0, limit - cost - newer
  local leaving = counted(cells[COUNTS + buckets])
  while room < 0 do
    ahead = ahead + 1
    leaving = counted(cells[COUNTS + buckets - ahead])
    room = room + leaving
  end
  local retry = cells[START] - now + (ahead + 1) * width
  if strict ~= 1 then retry = retry + 1 - ceil((room + 1) * width / leaving) end
  return retry
end

-- Writes the state with another count of the current sub-window. The other counts are shifted by the sub-windows that have passed.
local function write_newest(key, cells, value, past, reset)
  local older = rep(zero, past - 1)
  if value then older = older .. sub(value, first + (past == 0 and 15 or 8), first + 7 + 7 * (buckets + 1 - past)) end
  write(key, pack('>Bi7i7', layout, cells[START], cells[COUNTS]) .. older, reset)
end

local function decide(key, cost, commit)
  local cells, value, past = load(key)
  local start, newest = cells[START], cells[COUNTS]
  local newer = 0
  for i = COUNTS, COUNTS + buckets - 1 do
    local units = counted(cells[i])
    newer = newer + units
  end
  local weighted = counted(cells[COUNTS + buckets])
  if strict ~= 1 then weighted = floor(weighted * (width - max(now - start, 0)) / width) end
  local remaining = limit - weighted - newer
  local allowed = cost <= remaining
  local reset
  if allowed and commit then
    -- Keep the sign: a debt stays a debt.
    cells[COUNTS] = newest < 0 and newest - cost or newest + cost
    newer = newer + cost
    remaining = remaining - cost
    reset = reset_of(cells)
    -- Within a sub-window the expiry does not change.
    if newest ~= 0 and steady then
      put('SETRANGE', key, '15', pack(count_fields, cells[COUNTS]))
    else
      write_newest(key, cells, value, past, reset)
    end
  else
    reset = reset_of(cells)
  end
  if remaining < 0 then remaining = 0 end
  local retry = 0
  if cost > limit then
    retry = -1
  elseif cost > remaining then
    retry = retry_of(cells, newer, cost)
  end
  local state = wants_state and not (allowed and commit) and cells or nil
  return allowed, remaining, retry, reset, 0, max(start - now, 0), state
end

local function settle(key, charged_at, reserved, cost)
  local cells, value, past = load(key)
  local age = reserved == 0 and 0 or ceil((cells[START] - charged_at) / width)
  local change, count = 0, 0
  if age == 0 or age >= past and age <= buckets then count = cells[COUNTS + age] end
  if count ~= 0 or reserved == 0 then
    -- The sum of all counts stays below 2^53, and so does a count times the width.
    local room = floor(largest / max(width, buckets + 1))
    for i = COUNTS, COUNTS + buckets do room = room - abs(cells[i]) end
    change = change_of(reserved, cost)
    change = max(-abs(count), min(change, max(room, 0)))
  end
  if change ~= 0 then
    count = settled(count, change, limit)
    cells[COUNTS + age] = count
    -- Sub-windows outside the window do not count as state either.
    local reset = reset_of(cells)
    if reset == 0 then
      call('DEL', key)
    elseif age == 0 then
      write_newest(key, cells, value, past, reset)
    else
      local before = first + 7 + 7 * (age - past)
      value = sub(value, first, before) .. pack(count_fields, count) .. sub(value, before + 8)
      write(key, value, reset)
    end
  end
  return change, 1
end
