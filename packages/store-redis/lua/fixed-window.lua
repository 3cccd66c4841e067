-- Fixed window: a count that restarts at every whole multiple of the window. The twin of core's fixed-window.ts, with windows.lua.
--
-- State       layout 1: the window's start, the units taken in it
local layout, state_size, fields = 1, 15, '>Bi7i7'

local function load(key)
  local value = read(key, state_size)
  local start, count
  if value then
    local found
    found, start, count = unpack(fields, value, first)
    if found ~= layout or count <= 0 or count > largest or start - now > windowMs or now - start >= windowMs then value = nil end
  end
  if not value then
    start, count = floor(now / windowMs) * windowMs, 0
    origin = nil
  end
  return start, start + windowMs, count
end

local function packed(start, _, count)
  return pack(fields, layout, start, count)
end

local function cells_of(start, _, count)
  return { [START] = start, [COUNT] = count }
end
