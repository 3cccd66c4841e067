-- Sliding window log: the times of the units taken. The twin of core's sliding-window-log.ts.
--
-- State       layout 4: the units logged before the first entry that counts; the index of that entry, from 0; then the entries in
--             order of time, each a time and the running total of units up to and including it. Redis cannot shorten a string: after
--             a refund free places may follow the entries; the last one has their number and the total `free`
--
-- A request reads the two ends of a log and a few entries, and writes one entry, however long the log is. A settlement changes the newest
-- 250 entries at most, as core's does.
local layout, head, head_size, fields, entry_size = 4, '>BI7I7', birth_size + 15, '>i7I7', 14
local most_changed, free = 250, 36028797018963968

-- Bytes of a log read at once, and entries read at once if it is longer.
local page, page_end, near = 256, '255', 16

-- The current log: its length, the part that has been read, and the offset of that part.
local length, text, offset

-- The bytes of a range of entries.
local function slice(key, from, to)
  local start, stop, bytes = head_size + entry_size * from, head_size + entry_size * to, nil
  if start >= offset and stop <= offset + #text then
    bytes = sub(text, start - offset + 1, stop - offset)
  else
    bytes = call('GETRANGE', key, start, stop - 1)
  end
  return bytes
end

-- Reads a range of entries ahead.
local function hold(key, from, to)
  text = slice(key, from, to)
  offset = head_size + entry_size * from
end

-- The time and the running total of an entry.
local function entry(key, i)
  local bytes, at = text, head_size + entry_size * i - offset
  if at < 0 or at + entry_size > #text then
    bytes, at = call('GETRANGE', key, offset + at, offset + at + entry_size - 1), 0
  end
  local time, units = unpack(fields, bytes, at + 1)
  return time, units
end

-- The first entry of a range whose time (or running total) is above `bound`, or `to` if no entry is. That entry is usually near the start,
-- so this is an exponential search.
local function first_above(key, from, to, of_units, bound)
  local step, passed = 1, false
  if length > page then
    hold(key, from, min(from + near, to))
  end
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
  local to, from, base, newest, total = 0, nil, nil, nil, nil
  text, offset = call('GETRANGE', key, '0', page_end), 0
  length, origin = #text, nil
  local found, its_base, its_from
  if length >= head_size + entry_size then found, its_base, its_from = unpack(head, text, first) end
  if found == layout then
    if length == page then length = call('STRLEN', key) end
    local entries = (length - head_size) / entry_size
    if entries % 1 == 0 and its_from < entries then
      to, from, base, origin = entries, its_from, its_base, text
      if length <= page then
        newest, total = unpack(fields, text, length - entry_size + 1)
      else
        newest, total = unpack(fields, call('GETRANGE', key, '-14', '-1'))
      end
      if total == free then
        to = max(min(entries - newest, entries), from + 1)
        newest, total = entry(key, to - 1)
      end
      -- Only a corrupted log drops more than it holds, or more than a number holds exactly.
      if base > total or total > largest then to, origin = 0, nil end
    end
  end
  return to, from, base, newest, total
end

-- Merges the entries from `done` up to and including `i` into one cell pair. Returns the index after them.
local function add_up_to(key, cells, done, i, to)
  local added = done
  if i >= done and i < to then
    local time = entry(key, done)
    local _, units = entry(key, i)
    local size = #cells
    cells[size + 1] = time
    cells[size + 2] = units
    cells[TO] = cells[TO] + 1
    added = i + 1
  end
  return added
end

-- The state as core's cells. Of a long log only the eight oldest entries, the one that is waited for and the newest (of an inspected log,
-- the newest thousand) are exact. Entries between are merged into one with the oldest time, so a computed wait may be too short, never too
-- long.
local function cells_of(key, from, to, base, waited)
  local cells, done = { [BASE] = base, [FROM] = 0, [TO] = 0 }, from
  for i = from, from + 7 do
    done = add_up_to(key, cells, done, i, to)
  end
  local newest = wants_state == 'whole' and 1000 or 1
  if waited < to - newest then
    done = add_up_to(key, cells, done, waited - 1, to)
    done = add_up_to(key, cells, done, waited, to)
  end
  if newest > 1 and done < to then
    hold(key, max(done, to - newest - 1), to)
  end
  for i = to - newest - 1, to - 1 do
    done = add_up_to(key, cells, done, i, to)
  end
  return cells
end

-- Of an opened log: the time at which a request counts, the index of the first entry that counts then, the units before it, and the
-- units up to the last entry.
local function window_of(key, to, oldest, stored, newest, logged)
  local at, from, dropped, total = now, to, 0, logged
  if to > 0 and newest - now <= windowMs then
    if newest > now then at = newest end
    if newest > at - windowMs then
      from = first_above(key, oldest, to, false, at - windowMs)
    end
  end
  if from < to then
    dropped = stored
    if from ~= oldest then
      local _, units = entry(key, from - 1)
      dropped = units
    end
    -- Only a corrupted log drops more than it holds.
    if dropped > total then dropped, from = 0, to end
  end
  if from == to then
    total, origin = 0, nil
  end
  return at, from, dropped, total
end

-- Writes the entry of the `units` that are taken now. The log counts from the index `from` on, where `base` units no longer count; `stored`
-- is that number as stored, and `total` is that of the last entry.
local function log_units(key, to, stored, newest, at, from, base, total, units)
  local again, reset = newest == at, at + windowMs - now
  local kept, counts = again and to - 1 or to, nil
  if base > 0 and total + units > deepest then
    -- The running totals restart before they get too large.
    counts = {}
    hold(key, from, to)
    for i = from, kept - 1 do
      local time, units_at = entry(key, i)
      counts[#counts + 1] = pack(fields, time, units_at - base)
    end
    counts, total, base = concat(counts), total - base, 0
  elseif from * 2 >= to then
    -- Half of the entries no longer count.
    counts = slice(key, from, kept)
  end
  local made = pack(fields, at, total + units)
  if counts then
    write(key, pack(head, layout, base, 0) .. counts .. made, reset)
  else
    local next_free = head_size + entry_size * to
    put('SETRANGE', key, again and next_free - entry_size or next_free, made)
    if not again and next_free + entry_size < length then
      put('SETRANGE', key, length - entry_size, pack(fields, (length - next_free) / entry_size - 1, free))
    end
    if base ~= stored then
      put('SETRANGE', key, birth_size + 1, pack('>I7I7', base, from))
    end
    -- Within a millisecond the expiry does not change.
    if not (again and steady) then
      put('PEXPIRE', key, max(reset, 1) + longer_ms)
    end
  end
end

local function decide(key, cost, commit)
  local to, oldest, stored, newest, logged = open(key)
  local at, from, dropped, total = window_of(key, to, oldest, stored, newest, logged)
  local base, most = dropped, max(limit, total - dropped)
  local allowed = cost <= limit - (total - base)
  local logs = commit and (allowed or countRejected == 1)
  local units = 0
  if logs then
    -- A logged rejection evicts as many old units. A log that is longer than the limit keeps its length.
    units = min(cost, limit)
    base = max(base, total - (most - units))
  end

  local kept = total - base + units
  local remaining = max(limit - kept, 0)
  local reset = kept == 0 and 0 or (logs and at or newest) + windowMs - now
  local retry, waited = 0, to
  if cost > limit then
    retry = -1
  elseif cost > remaining then
    -- The request fits when this unit has left. It may belong to the entry that is about to be written.
    waited = first_above(key, from, to, true, total - (limit - cost) + units - 1)
    local leaves = at
    if waited < to then
      leaves = entry(key, waited)
    end
    retry = max(1, min(leaves + windowMs - now, reset))
  end

  local state
  if not logs then
    if wants_state == 'whole' or wants_state and countRejected ~= 1 then
      state = cells_of(key, from, to, base, waited)
    end
  else
    if base > dropped then
      from = first_above(key, from, to, true, base)
    end
    log_units(key, to, stored, newest, at, from, base, total, units)
  end
  return allowed, remaining, retry, reset, 0, at - now, state
end

local function settle(key, charged_at, reserved, cost)
  local to, from, base, newest, total = open(key)
  local change, place, left_ms = 0, to, 0
  if to > 0 then
    left_ms = max(now, newest) - windowMs
    if newest - now <= windowMs and charged_at > left_ms then
      place = first_above(key, from, to, false, charged_at - 1)
    end
  end
  if reserved == 0 then
    local at, start, dropped, before = window_of(key, to, from, base, newest, total)
    change = window_change_of(reserved, cost)
    change = max(min(change, deepest - (before - dropped)), 0)
    if change > 0 then
      log_units(key, to, base, newest, at, start, dropped, before, change)
    end
  elseif place < to then
    local time, units = entry(key, place)
    local before = base
    if place ~= from then
      local _, others = entry(key, place - 1)
      before = others
    end
    -- Logged rejections may have pushed the charge out. Then nothing is refunded, and a debt counts from the first of them.
    units = time == charged_at and max(units - before, 0) or 0
    change = window_change_of(reserved, cost)
    change = max(-units, min(change, max(deepest - (total - base), 0)))
    if change ~= 0 then
      -- Debts do not accumulate in the running totals: before they get too large, they restart at the first unit that counts. So they do
      -- in a short log.
      local places = (length - head_size) / entry_size
      local rewrites = to - from <= most_changed or total + change > deepest
      if to - place > most_changed and not rewrites then
        if change > 0 then
          call('SETRANGE', key, head_size + entry_size * (to - 1), pack(fields, newest, total + change))
        else
          local counting = first_above(key, from, to, false, left_ms)
          if counting ~= from then
            local _, gone = entry(key, counting - 1)
            base = gone
          end
          base = base - change
          counting = first_above(key, counting, to, true, base)
          call('SETRANGE', key, birth_size + 1, pack('>I7I7', base, counting))
        end
        call('PEXPIRE', key, max(newest + windowMs - now, 1) + longer_ms)
      else
        local start = rewrites and from or place
        local less = rewrites and base or 0
        local changed = {}
        hold(key, start, to)
        for i = start, to - 1 do
          if i ~= place or change ~= -units then
            local at, total_at = entry(key, i)
            changed[#changed + 1] = pack(fields, at, total_at - less + (i < place and 0 or change))
          end
        end
        local kept = start + #changed
        if #changed > 0 then
          newest = unpack(fields, changed[#changed])
        elseif start > from then
          local latest = entry(key, start - 1)
          newest = latest
        end
        local reset = newest + windowMs - now
        -- Entries outside the window do not count as state either.
        if kept == from or newest <= left_ms then
          call('DEL', key)
        elseif rewrites then
          write(key, pack(head, layout, 0, 0) .. concat(changed), reset)
        elseif places - kept > kept then
          -- Most places would be free.
          local others = slice(key, from, start)
          write(key, pack(head, layout, base, 0) .. others .. concat(changed), reset)
        else
          if kept < to then call('SETRANGE', key, length - entry_size, pack(fields, places - kept, free)) end
          if #changed > 0 then call('SETRANGE', key, head_size + entry_size * start, concat(changed)) end
          call('PEXPIRE', key, max(reset, 1) + longer_ms)
        end
      end
    end
  end
  return change, 1
end
