-- Sliding window counter: one count per sub-window; the oldest is weighted by the part of it that is still in the window, unless the
-- policy is strict. The twin of core's sliding-window-counter.ts.
--
-- State       layout 2: the start of the newest counted sub-window, its count, and those of the `buckets` before it, newest first
local layout, count_fields, zero = 2, '>i7', ('\0'):rep(7)

-- Unpacks a state: its start, and the counts.
local function cells_of(value, policy)
  local buckets = policy.buckets
  -- A Lua function can return only some thousand values, so counts beyond a hundred are read one by one.
  local fields = policy.fields or '>i7' .. ('i7'):rep(min(buckets + 1, 100))
  policy.fields = fields
  local cells = { unpack(fields, value, 2) }
  for i = 102, buckets + 2 do cells[i] = unpack(count_fields, value, 7 * i - 5) end
  cells[buckets + 3] = nil
  return cells
end

-- Returns the state as of now (the current sub-window's start, and the counts by age), the stored value, and its age in sub-windows
-- (`buckets` + 1 if nothing of it counts any more).
local function load(key, policy)
  local window, buckets = policy.windowMs, policy.buckets
  local width = window / buckets
  local value, past = read(key, layout, 15 + 7 * buckets), buckets + 1
  if value then
    value = value:sub(first)
    local cells = cells_of(value, policy)
    local away = now - cells[START]
    if -away <= window then past = away < width and 0 or min(floor(away / width), past) end
    if past == 0 then return cells, value, past end
    if past <= buckets then
      cells[START] = cells[START] + past * width
      for i = COUNTS + buckets, COUNTS, -1 do cells[i] = i - past >= COUNTS and cells[i - past] or 0 end
      return cells, value, past
    end
  end
  birth = nil
  local cells = { [START] = floor(now / width) * width }
  for i = COUNTS, COUNTS + buckets do cells[i] = 0 end
  return cells, '', past
end

-- The time after which no count is in the window.
local function reset_of(policy, cells)
  local window, buckets = policy.windowMs, policy.buckets
  local width = window / buckets
  for age = 0, buckets do
    if cells[COUNTS + age] ~= 0 then return cells[START] - now + window + (1 - age) * width end
  end
  return 0
end

-- The wait after which a rejected request passes. In each coming sub-window one count leaves the window; `room` is the weight that
-- it may still have. In a strict policy the request passes when all of that count has left.
local function retry_of(policy, cells, newer, cost)
  local limit, buckets = policy.limit, policy.buckets
  local width = policy.windowMs / buckets
  local ahead, leaving, room = 0, counted(cells[COUNTS + buckets], limit), limit - cost - newer
  while room < 0 do
    ahead = ahead + 1
    leaving = counted(cells[COUNTS + buckets - ahead], limit)
    room = room + leaving
  end
  if policy.strict == 1 then return cells[START] - now + (ahead + 1) * width end
  return cells[START] - now + (ahead + 1) * width + 1 - ceil((room + 1) * width / leaving)
end

local function decide(key, policy, cost, commit)
  local limit, buckets = policy.limit, policy.buckets
  local width = policy.windowMs / buckets
  local cells, value, past = load(key, policy)
  local start, newest = cells[START], cells[COUNTS]
  local newer = 0
  for i = COUNTS, COUNTS + buckets - 1 do newer = newer + counted(cells[i], limit) end
  local weighted = counted(cells[COUNTS + buckets], limit)
  if policy.strict ~= 1 then weighted = floor(weighted * (width - max(now - start, 0)) / width) end
  local remaining = limit - weighted - newer
  local allowed = cost <= remaining
  if allowed and commit then
    -- Keep the sign: a debt stays a debt.
    cells[COUNTS] = newest < 0 and newest - cost or newest + cost
    newer = newer + cost
    remaining = remaining - cost
    -- Within a sub-window the expiry does not change.
    if newest ~= 0 and steady then
      call('SETRANGE', key, '15', pack(count_fields, cells[COUNTS]))
    else
      -- Shift the counts by the sub-windows that have passed.
      local older = zero:rep(past - 1) .. value:sub(past == 0 and 16 or 9, 8 + 7 * (buckets + 1 - past))
      write(key, pack('>Bi7i7', layout, start, cells[COUNTS]) .. older, reset_of(policy, cells))
    end
  end
  remaining = max(remaining, 0)
  local retry = cost <= remaining and 0 or cost > limit and -1 or retry_of(policy, cells, newer, cost)
  local state = wants_state and not (allowed and commit) and cells or nil
  return allowed, remaining, retry, reset_of(policy, cells), 0, max(start - now, 0), state
end

local function settle(key, policy, charged_at, reserved, cost)
  local limit, buckets = policy.limit, policy.buckets
  local width = policy.windowMs / buckets
  local cells, value, past = load(key, policy)
  local age = ceil((cells[START] - charged_at) / width)
  if age < past or age > buckets then return 0 end
  local count = cells[COUNTS + age]
  if count == 0 then return 0 end
  -- The sum of all counts times the width must stay below 2^53.
  local room = floor(largest / width)
  for i = COUNTS, COUNTS + buckets do room = room - math.abs(cells[i]) end
  local change = max(-math.abs(count), min(change_of(reserved, cost), max(room, 0)))
  if change == 0 then return 0 end
  count = settled(count, change, limit)
  cells[COUNTS + age] = count
  local before = 8 + 7 * (age - past)
  value = value:sub(1, before) .. pack(count_fields, count) .. value:sub(before + 8)
  -- Sub-windows outside the window do not count as state either.
  local reset = reset_of(policy, cells)
  if reset == 0 then
    call('DEL', key)
  else
    write(key, value, reset)
  end
  return change
end
