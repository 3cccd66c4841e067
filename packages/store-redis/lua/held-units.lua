-- Templates for held units: see src/templates.ts.
--
-- State       layout 8 (slots) or 9 (holds): the units of all entries; then the entries in order of their ends, each an end and its units

-- Opens a list of units that are held for `longest` ms at most. Returns
--   the value, which is empty if the key does not exist;
--   the offset of the first entry that has not ended;
--   the units from that entry on;
--   the time: Redis's clock, or the newest time in the list if that is later;
--   the units of the entries that have ended.
local function open_held(key, longest)
  local value = prefetched or call('GET', key) or ''
  local from, held, at, gone = 16, 0, now, 0
  local size = #value - 15
  origin = nil
  if size > 0 and size % 14 == 0 then
    local found, units = unpack('>BI7', value, first)
    local newest = unpack('>i7I7', value, #value - 13) - longest
    if (found == 8 or found == 9) and newest - now <= longest then
      at, held, origin = max(newest, now), units, value
    end
  end
  -- Only a corrupted list is out of order, or has another sum. Core must decide the same on a state that is shown.
  if origin and wants_state == 'whole' then
    local sum, latest = 0, -huge
    for i = 16, #value, 14 do
      local ends, units = unpack('>i7I7', value, i)
      if ends <= latest or units < 1 then sum = huge end
      sum, latest = sum + units, ends
    end
    if sum ~= held then origin = nil end
  end
  if origin then
    local ends, units = unpack('>i7I7', value, from)
    while ends <= at and from < #value do
      from, held, gone = from + 14, held - units, gone + units
      if from < #value then
        ends, units = unpack('>i7I7', value, from)
      end
    end
    if from > #value or held < 1 then origin = nil end
  end
  if not origin then value, from, held = '', 1, 0 end
  return value, from, held, at, gone
end
