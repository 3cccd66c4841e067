-- The last part of a script for one decision alone: it consumes units of one key under one policy. The calls below are replaced by the bodies of the functions. Creating those functions, a table for the policy and a pcall would cost as
-- much as the decision.
--
-- KEYS[1]  the key of the state
-- ARGV[3]  the units to consume; 1 if it is missing
-- ARGV...  of a calendar window, its edges
--
-- The parameters of the policy, `wants_state` and the length of the key's last part (`kind_size`) are constants of the script: each policy has
-- its own.
--
-- Replies as batch.lua does to a consume. But a decision that fails is an error of the script: no other step fails with it.
local key, cost = KEYS[1], tonumber(ARGV[3] or 1)
check = 1

local left_ms, is_ban = 0, false
-- A value of another type is no block. While a Cluster slot moves, the block may be on the other node: then the key is not blocked here.
local block = redis.pcall('GET', sub(key, 1, -1 - kind_size) .. 'blocks')
check_permission(block)
if block and type(block) == 'string' then
  left_ms, is_ban = blocked_ms(block)
end

local allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = decide(key, cost, left_ms == 0)

if allowed and retry_ms == 0 and delay_ms == 0 and ahead_ms == 0 and left_ms == 0 then return { server_us, remaining, reset_ms } end
local reply, size = { server_us, nil, nil, nil, nil, nil, nil, nil }, 1
if left_ms > 0 then reply[2], reply[3], size = is_ban and -4 or -3, left_ms, 3 end
size = append_decision(reply, size, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms)
if not allowed or left_ms > 0 then
  size = append_state(reply, size, state)
end
return reply
