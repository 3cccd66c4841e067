-- Fixed window: a count that restarts at every whole multiple of the window. The twin of core's fixed-window.ts.
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
  return start, count
end

local function decide(key, cost, commit)
  local start, found = load(key)
  local count = found
  local allowed = cost <= limit - count
  local ahead = start - now
  local reset = ahead + windowMs
  if allowed and commit then
    count = count + cost
    -- Within a window the expiry does not change.
    if found ~= 0 and steady then
      call('SETRANGE', key, '15', pack('>i7', count))
    else
      write(key, pack(fields, layout, start, count), reset)
    end
  end
  local remaining = limit - count
  if remaining < 0 then remaining = 0 end
  if count == 0 then reset = 0 end
  local retry = cost <= remaining and 0 or cost > limit and -1 or reset
  local state = wants_state and not (allowed and commit) and { [START] = start, [COUNT] = found } or nil
  return allowed, remaining, retry, reset, 0, ahead > 0 and ahead or 0, state
end

local function settle(key, charged_at, reserved, cost)
  local start, count = load(key)
  local change = 0
  if reserved == 0 or count ~= 0 and charged_at >= start and charged_at - start < windowMs then
    change = window_change_of(reserved, cost)
    change = max(-count, min(change, largest - count))
  end
  if change ~= 0 and change == -count then
    call('DEL', key)
  elseif change ~= 0 then
    write(key, pack(fields, layout, start, count + change), start + windowMs - now)
  end
  return change, 1
end
