-- The blocks and bans of keys, and states that are read ahead. A part of the general script: see batch.lua.

-- `block_names`: for each of KEYS, the name of the Redis key that has its block.
-- `blocks`: the values of these Redis keys, read by one MGET. It is nil if no key of the batch has a block, which is the usual case.
local keys, block_names, blocks = #KEYS, {}, nil
for i = 1, keys do block_names[i] = (kind_size and sub(KEYS[i], 1, -1 - kind_size) or match(KEYS[i], '^.*:')) .. 'blocks' end

for from = 1, keys, 1000 do
  local to = min(from + 999, keys)
  local values = redis.pcall('MGET', spread(block_names, from, to))
  for number = from, to do
    -- While a Cluster slot moves, the block of a key may be on the other node: then the key is not blocked here.
    local value = values.err and redis.pcall('GET', block_names[number]) or values[number - from + 1]
    if value then
      check_permission(value)
      if type(value) == 'string' then
        blocks = blocks or {}
        blocks[number] = value
      end
    end
  end
end

-- The states that are read ahead: one MGET takes half as long as a GET for each. A missing one is read again, because MGET does not tell it from
-- a key of another type. While a Cluster slot moves, MGET fails, and nothing is read ahead.
local states = kind_size and redis.pcall('MGET', spread(KEYS)) or {}

-- How long the key of a block is still turned away. Call it only if there are `blocks`.
local function blocked_at(number)
  local left_ms = blocked_ms(blocks[number])
  return left_ms
end

-- Appends the decision for a blocked key.
local function append_blocked(number, ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state)
  if ok then
    local left_ms, is_ban = blocked_ms(blocks[number])
    answer[size + 1] = is_ban and -4 or -3
    answer[size + 2] = left_ms
    size = size + 2
  end
  append(ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, true)
end
