-- A template of lean scripts: decides under the limit of an index, and appends to the reply. See lean.lua.
local function decide_limit(index, value)
  check, prefetched = index, value
  local left_ms, is_ban = 0, false
  if values[index] then
    left_ms, is_ban = blocked_ms(values[index])
  end
  local commit = left_ms == 0 and (whole or rejects and rejects[index])
  local allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = decide(KEYS[check], tonumber(ARGV[index + 2] or 1), commit)
  if not (allowed and left_ms == 0) then
    passes, rejects = false, rejects or {}
    rejects[index] = not allowed
  end
  if passes and whole and retry_ms == 0 and delay_ms == 0 and ahead_ms == 0 and remaining <= max_read then
    reply[size + 1] = remaining
    reply[size + 2] = reset_ms
    size = size + 2
  else
    if left_ms > 0 then reply[size + 1], reply[size + 2], size = is_ban and -4 or -3, left_ms, size + 2 end
    size = append_decision(reply, size, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms)
    if not allowed or left_ms > 0 or not whole then
      size = append_state(reply, size, state)
    end
  end
end
