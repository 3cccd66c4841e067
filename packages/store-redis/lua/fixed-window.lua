-- Fixed window: a count that restarts at every whole multiple of the window. The twin of core's fixed-window.ts.
--
-- State       layout 1: the window's start, the units taken in it
local layout, state_size, fields = 1, 15, '>Bi7i7'

local function load(key, window)
  local value = read(key, layout, state_size)
  if value then
    local _, start, count = unpack(fields, value, first)
    if count > 0 and count <= largest and start - now <= window and now - start < window then return start, count end
  end
  birth = nil
  return floor(now / window) * window, 0
end

local function decide(key, policy, cost, commit)
  local limit, window = policy.limit, policy.windowMs
  local start, found = load(key, window)
  local count = found
  local allowed = cost <= limit - count
  local reset = start + window - now
  if allowed and commit then
    count = count + cost
    -- Within a window the expiry does not change.
    if found ~= 0 and steady then
      call('SETRANGE', key, '15', pack('>i7', count))
    else
      write(key, pack(fields, layout, start, count), reset)
    end
  end
  local remaining = max(limit - count, 0)
  if count == 0 then reset = 0 end
  local retry = cost <= remaining and 0 or cost > limit and -1 or reset
  local state = wants_state and not (allowed and commit) and { [START] = start, [COUNT] = found } or nil
  return allowed, remaining, retry, reset, 0, max(start - now, 0), state
end

local function settle(key, policy, charged_at, reserved, cost)
  local window = policy.windowMs
  local start, count = load(key, window)
  if count == 0 or charged_at < start or charged_at - start >= window then return 0 end
  local change = max(-count, min(window_change_of(reserved, cost), largest - count))
  if change == -count then
    call('DEL', key)
  elseif change ~= 0 then
    write(key, pack(fields, layout, start, count + change), start + window - now)
  end
  return change
end
