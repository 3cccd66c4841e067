-- Decides about a key under a policy whose units are held: the body of a function in batch.lua. `decide` is that of the policy alone. Held units
-- count as taken until they end. `holds_ms` is how long a request holds its units (0: it charges them at once) and `longest` the longest time.
-- `window` is the length of fixed windows (0 for calendar windows, -1 for others) and `last_edge` the place of the last edge in ARGV: held
-- units end with their window.
local list, shows = key .. ':holds', wants_state == 'whole'
local value, place, held, at = open_held(list, longest)
local born = origin
local allowed, remaining, retry, reset, delay, ahead, state = decide(key, held + cost, false)
local limit_ms = reset
local entries = (#value + 1 - place) / 14
if holds_ms > 0 and entries >= 10000 then allowed = false end
local ends_in = 0
if commit and allowed and holds_ms > 0 then
  local ends = at + holds_ms
  -- The edges of a calendar window are its last parameters.
  for i = last_edge - 3, window == 0 and last_edge or 0 do
    local edge = tonumber(ARGV[i])
    if edge > now + ahead then ends = min(ends, edge) end
  end
  if window > 0 then ends = min(ends, (floor((now + ahead) / window) + 1) * window) end
  local stop, units, found, others = #value - 13, cost, nil, nil
  while stop >= place do
    found, others = unpack('>i7I7', value, stop)
    if found <= ends then break end
    stop = stop - 14
  end
  local after = sub(value, stop + 14)
  if stop >= place and found == ends then
    stop, units = stop - 14, units + others
  end
  local before = sub(value, place, stop + 13)
  held, origin = held + cost, born
  value = before .. pack('>i7I7', ends, units) .. after
  entries, place = #value / 14, 1
  local newest = unpack('>i7I7', value, #value - 13)
  write(list, pack('>BI7', 9, held) .. value, newest - now)
  ends_in = ends - now
elseif commit and allowed then
  allowed, remaining, retry, limit_ms, delay, ahead = decide(key, cost, true)
end
local least = holds_ms > 0 and entries >= 10000 and 1 or 0
remaining, reset, retry = least > 0 and 0 or max(remaining - held, 0), limit_ms, 0
if entries > 0 then
  local newest = unpack('>i7I7', value, #value - 13)
  reset = max(reset, newest - now)
end
-- The wait once so many entries have ended: until then, and by the limit itself.
local function wait_after(ended)
  local left, until_ms = held, now
  for i = 0, ended - 1 do
    local ends, units = unpack('>i7I7', value, place + 14 * i)
    left, until_ms = left - units, ends
  end
  -- The sum of a corrupted list may be another.
  if ended == entries then left = 0 end
  local _, _, wait = decide(key, left + cost, false)
  if wait < 0 then wait = huge end
  return wait, until_ms - now
end
if cost > remaining then
  local low, high = least, entries
  while low < high do
    local middle = floor((low + high) / 2)
    local wait, until_ms = wait_after(middle)
    if wait <= until_ms then high = middle else low = middle + 1 end
  end
  local wait, until_ms = wait_after(low)
  retry = max(wait, until_ms)
  if low > least then retry = min(retry, (wait_after(low - 1))) end
  if retry == huge then retry = -1 end
end
if shows then
  local cells = { entries, held }
  for i = 0, entries - 1 do cells[#cells + 1], cells[#cells + 2] = unpack('>i7I7', value, place + 14 * i) end
  for _, cell in ipairs(state) do cells[#cells + 1] = cell end
  state = cells
else
  state = nil
end
return allowed, remaining, retry, reset, ends_in, ahead, state
