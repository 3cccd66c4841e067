-- Calendar window: a count that restarts with each unit of a calendar. The twin of core's calendar-window.ts, with windows.lua.
--
-- The caller sends the edges of three windows (`edge_1` to `edge_4`), and this server's time picks one. If it is in none of them, the script
-- does nothing, as if it had come too late: the caller learns the time, and asks again.
--
-- State       layout 7: the window's start, the units taken in it, the window's end
local layout, state_size, fields = 7, 22, '>Bi7i7i7'
if now < edge_1 or now >= edge_4 then return { server_us } end

local function load(key)
  local value = read(key, state_size)
  local start, count, stop
  if value then
    local found
    found, start, count, stop = unpack(fields, value, first)
    if found ~= layout or count <= 0 or count > largest or start - now > spanMs or now >= stop or stop - start > 2 * spanMs then value = nil end
  end
  if not value then
    start, count, stop = edge_1, 0, edge_2
    if now >= edge_3 then start, stop = edge_3, edge_4 elseif now >= edge_2 then start, stop = edge_2, edge_3 end
    origin = nil
  end
  return start, stop, count
end

local function packed(start, stop, count)
  return pack(fields, layout, start, count, stop)
end

local function cells_of(start, stop, count)
  return { [START] = start, [COUNT] = count, [END] = stop }
end
