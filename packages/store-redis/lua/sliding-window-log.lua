-- Sliding window log: the times of the units taken. The twin of core's sliding-window-log.ts.
--
-- State       layout 3: the units logged before the first entry that counts; the index of that entry, from 0; then the entries in
--             order of time, each a time and the running total of units up to and including it
--
-- A request reads the two ends of a log and a few entries, and appends one entry, however long the log is. Only a settlement
-- rewrites the log.
local layout, head, head_size, fields, entry_size = 3, '>BI7I7', birth_size + 15, '>i7I7', 14

-- Bytes of a log read at once, and entries read at once if it is longer.
local page, page_end, near = 256, '255', 16

-- The current log: its length, the part that has been read, and the offset of that part.
local length, text, offset

-- The bytes of a range of entries.
local function slice(key, from, to)
  local first, last = head_size + entry_size * from, head_size + entry_size * to
  if first >= offset and last <= offset + #text then return text:sub(first - offset + 1, last - offset) end
  return call('GETRANGE', key, first, last - 1)
end

-- Reads a range of entries ahead.
local function hold(key, from, to)
  text, offset = slice(key, from, to), head_size + entry_size * from
end

-- The time and the running total of an entry.
local function entry(key, i)
  local at = head_size + entry_size * i - offset
  if at >= 0 and at + entry_size <= #text then return unpack(fields, text, at + 1) end
  return unpack(fields, slice(key, i, i + 1))
end

local function units_of(key, i)
  local _, units = entry(key, i)
  return units
end

-- The first entry of a range whose time (or running total) is above `bound`; `to` if there is none. It is usually near the start:
-- exponential search.
local function first_above(key, from, to, of_units, bound)
  local step, passed = 1, false
  if length > page then hold(key, from, min(from + near, to)) end
  while from < to do
    local probe = passed and floor((from + to) / 2) or min(from + step, to) - 1
    local time, units = entry(key, probe)
    if (of_units and units or time) > bound then
      to, passed = probe, true
    else
      from, step = probe + 1, 2 * step
    end
  end
  return from
end

-- Opens a log. Returns the number of entries (0: no log), the index of the first that counts, the units before it, and the newest
-- entry.
local function open(key)
  text, offset = call('GETRANGE', key, '0', page_end), 0
  length, birth = #text, nil
  if byte(text, first) ~= layout then return 0 end
  if length == page then length = call('STRLEN', key) end
  local to = (length - head_size) / entry_size
  if to < 1 or to % 1 > 0 then return 0 end
  local _, base, from = unpack(head, text, first)
  if from >= to then return 0 end
  birth = text:sub(1, birth_size)
  if length <= page then return to, from, base, entry(key, to - 1) end
  return to, from, base, unpack(fields, call('GETRANGE', key, '-14', '-1'))
end

-- The state as core's cells. Of a long log only the eight oldest entries, the one that is waited for and the newest (of an inspected log,
-- the newest thousand) are exact. Entries between are merged into one with the oldest time, so a computed wait may be too short, never too
-- long.
local function cells_of(key, from, to, base, waited)
  local cells, done = { [BASE] = base, [FROM] = 0, [TO] = 0 }, from
  local function add_up_to(i)
    if i < done or i >= to then return end
    local size = #cells
    cells[size + 1] = entry(key, done)
    cells[size + 2] = units_of(key, i)
    cells[TO] = cells[TO] + 1
    done = i + 1
  end
  for i = done, done + 7 do add_up_to(i) end
  if waited < to then
    add_up_to(waited - 1)
    add_up_to(waited)
  end
  local newest = wants_state == 'whole' and 1000 or 1
  if newest > 1 and done < to then hold(key, max(done, to - newest - 1), to) end
  for i = to - newest - 1, to - 1 do add_up_to(i) end
  return cells
end

local function decide(key, policy, cost, commit)
  local limit, window, counts_rejected = policy.limit, policy.windowMs, policy.countRejected == 1
  local to, oldest, stored, newest, total = open(key)
  local at, from, dropped = now, to, 0
  if to > 0 and newest - now <= window then
    at = max(now, newest)
    if newest > at - window then from = first_above(key, oldest, to, false, at - window) end
  end
  if from < to then
    dropped = from == oldest and stored or units_of(key, from - 1)
    -- Only a corrupted log drops more than it holds.
    if dropped > total then dropped, from = 0, to end
  end
  if from == to then
    total, birth = 0, nil
  end
  local base, most = dropped, max(limit, total - dropped)
  local allowed = cost <= limit - (total - base)
  local logs = commit and (allowed or counts_rejected)
  if logs then
    -- A logged rejection evicts as many old units. A log that is longer than the limit keeps its length.
    total = total + min(cost, limit)
    base = max(base, total - most)
  end

  local kept = total - base
  local remaining = max(limit - kept, 0)
  local reset = kept == 0 and 0 or (logs and at or newest) + window - now
  local retry, waited = 0, to
  if cost > limit then
    retry = -1
  elseif cost > remaining then
    -- The request fits when this unit has left. It may belong to the entry that is about to be written.
    waited = first_above(key, from, to, true, total - (limit - cost) - 1)
    retry = max(1, min((waited < to and entry(key, waited) or at) + window - now, reset))
  end
  if not logs then
    local state = (wants_state == 'whole' or wants_state and not counts_rejected) and cells_of(key, from, to, base, waited) or nil
    return allowed, remaining, retry, reset, 0, at - now, state
  end

  -- Compact the log when half of its entries no longer count.
  if base > dropped then from = first_above(key, from, to, true, base) end
  local made = pack(fields, at, total)
  local again = newest == at
  if from * 2 >= to then
    write(key, pack(head, layout, base, 0) .. slice(key, from, again and to - 1 or to) .. made, reset)
  else
    if again then call('SETRANGE', key, length - entry_size, made) else call('APPEND', key, made) end
    if base ~= stored then call('SETRANGE', key, birth_size + 1, pack('>I7I7', base, from)) end
    -- Within a millisecond the expiry does not change.
    if not (again and steady) then call('PEXPIRE', key, ttl(reset)) end
  end
  return allowed, remaining, retry, reset, 0, at - now
end

local function settle(key, policy, charged_at, reserved, cost)
  local window = policy.windowMs
  local to, from, base, newest, total = open(key)
  if to == 0 then return 0 end
  local left_ms = max(now, newest) - window
  if newest - now > window or charged_at <= left_ms then return 0 end
  local place = first_above(key, from, to, false, charged_at - 1)
  if place == to then return 0 end
  local time, units = entry(key, place)
  -- Logged rejections may have pushed the charge out. Then nothing is refunded, and a debt counts from the first of them.
  units = time == charged_at and max(units - (place == from and base or units_of(key, place - 1)), 0) or 0
  local change = max(-units, min(window_change_of(reserved, cost), max(deepest - (total - base), 0)))
  if change == 0 then return 0 end

  -- Restart the running totals at the first unit that counts, so that debts do not accumulate in them.
  local left = {}
  hold(key, from, to)
  for i = from, to - 1 do
    if i ~= place or change ~= -units then
      local time, units = entry(key, i)
      left[#left + 1] = pack(fields, time, units - base + (i < place and 0 or change))
    end
  end
  if #left > 0 then newest = unpack(fields, left[#left]) end
  -- Entries outside the window do not count as state either.
  if #left == 0 or newest <= left_ms then
    call('DEL', key)
  else
    write(key, pack(head, layout, 0, 0) .. table.concat(left), newest + window - now)
  end
  return change
end
