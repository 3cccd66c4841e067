-- Concurrency: a slot for each request in flight. The twin of core's concurrency.ts.
--
-- State       layout 8: the units of all entries; then the entries in order of their ends, each an end and its units
local layout, head, head_size, fields, entry_size = 8, '>BI7', birth_size + 8, '>i7I7', 14

-- `owns`: whether the request had its units until now. Then it gets them again, even above the limit.
local function decide(key, cost, commit, owns)
  local value, from, held, at = open_held(key, holdMs)
  local allowed = owns or cost <= limit - held
  local reset = 0
  if held > 0 then
    reset = unpack(fields, value, #value - entry_size + 1) - now
  end
  if allowed and commit then
    local stop, units = #value, cost
    if at + holdMs - now == reset then
      local _, others = unpack(fields, value, stop - entry_size + 1)
      stop, units = stop - entry_size, units + others
    end
    held, reset = held + cost, at + holdMs - now
    value = pack(head, layout, held) .. sub(value, from, stop) .. pack(fields, at + holdMs, units)
    -- As `open` would find it. `write` puts the birth before it.
    write(key, value, reset)
    value, from = rep(' ', birth_size) .. value, head_size + 1
  end
  local remaining = max(limit - held, 0)
  local retry = 0
  if cost > limit then
    retry = -1
  elseif cost > remaining then
    local left, place = held + cost - limit, from
    while left > 0 and place < #value do
      local ends, units = unpack(fields, value, place)
      left, place, retry = left - units, place + entry_size, max(1, min(ends - now, reset))
    end
  end
  local state
  if wants_state == 'whole' then
    state = { [ENTRIES] = 0, [HELD] = held }
    for place = from, #value, entry_size do
      local ends, units = unpack(fields, value, place)
      state[#state + 1] = ends
      state[#state + 1] = units
    end
    state[ENTRIES] = (#state - HELD) / 2
  end
  return allowed, remaining, retry, reset, 0, at - now, state
end

local function settle(key, charged_at, reserved, cost)
  local value, from, held, at, gone = open_held(key, holdMs)
  local ends, low, high = charged_at + holdMs, 0, (#value + 1 - from) / entry_size
  local change = 0
  if cost < reserved then
    while low < high do
      local middle = floor((low + high) / 2)
      local found = unpack(fields, value, from + entry_size * middle)
      if found < ends then low = middle + 1 else high = middle end
    end
    local place = from + entry_size * low
    if place < #value then
      local found, units = unpack(fields, value, place)
      if found == ends then
        change = -min(reserved - cost, units)
        held = held + change
        local rest = units + change > 0 and pack(fields, ends, units + change) or ''
        local others = sub(value, head_size + 1, place - 1) .. rest .. sub(value, place + entry_size)
        if held < 1 or others == '' then
          call('DEL', key)
        else
          local newest = unpack(fields, others, #others - entry_size + 1)
          write(key, pack(head, layout, gone + held) .. others, newest - now)
        end
      end
    end
  end
  return change, 1
end
