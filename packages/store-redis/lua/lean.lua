-- The last part of a lean script: one request alone consumes units under one limit, or under several, all or none. All calls are inlined:
-- functions, tables for the policies and a pcall would cost as much as the decision.
--
-- KEYS     the keys of the states
-- ARGV[3]  and so on: the units to consume of each; 1 if missing
-- ARGV...  of each calendar window, its edges
--
-- The parameters of the policies, `wants_state` and `is_whole` are constants of the script.
--
-- Replies as the general script does to a consume; if `is_whole`, as to an 'a'. But a decision that fails is an error of the script.
local reply, size, whole, passes, rejects = { server_us, nil, nil, nil, nil, nil }, 1, true, true, nil
local values = redis.pcall('MGET', VALUES)
if values.err then
  -- While a Cluster slot moves, a block may be on the other node: then the key is not blocked here. `decide` reads the state.
  values = {}
  for i = 1, #KEYS do
    local block = redis.pcall('GET', match(KEYS[i], '^.*:') .. 'blocks')
    check_permission(block)
    values[i] = type(block) == 'string' and block
  end
end
-- The writes of the first round wait for all limits.
if is_whole then writes = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil } end
for _ = 1, 2 do
  if is_whole then size, passes = 2, true end
DECISIONS
  if not writes then break end
  whole = passes
  if whole then
    put_all()
    break
  end
  -- Decide again: now only a log with countRejected is charged, if it rejects.
  writes = nil
end
if is_whole then reply[2] = whole and 1 or 0 end
return reply
