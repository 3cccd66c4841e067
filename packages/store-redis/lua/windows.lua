-- Fixed and calendar windows differ in their edges and in what they store. These are the `decide` and `settle` of both: see
-- src/templates.ts. `load` answers the start and the end of the window, and the units taken in it. The count is stored at byte 15.
local function decide(key, cost, commit)
  local start, stop, found = load(key)
  local count = found
  local allowed = cost <= limit - count
  local ahead = start - now
  local reset = stop - now
  if allowed and commit then
    count = count + cost
    -- Within a window the expiry does not change.
    if found ~= 0 and steady then
      put('SETRANGE', key, '15', pack('>i7', count))
    else
      local value = packed(start, stop, count)
      write(key, value, reset)
    end
  end
  local remaining = limit - count
  if remaining < 0 then remaining = 0 end
  if count == 0 then reset = 0 end
  local retry = cost <= remaining and 0 or cost > limit and -1 or reset
  local state
  if wants_state and not (allowed and commit) then
    state = cells_of(start, stop, found)
  end
  return allowed, remaining, retry, reset, 0, ahead > 0 and ahead or 0, state
end

local function settle(key, charged_at, reserved, cost)
  local start, stop, count = load(key)
  local change = 0
  if reserved == 0 or count ~= 0 and charged_at >= start and charged_at < stop then
    change = window_change_of(reserved, cost)
    change = max(-count, min(change, largest - count))
  end
  if change ~= 0 and change == -count then
    call('DEL', key)
  elseif change ~= 0 then
    local value = packed(start, stop, count + change)
    write(key, value, stop - now)
  end
  return change, 1
end
