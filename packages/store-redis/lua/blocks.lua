-- The blocks and bans of keys. A part of the general script: see batch.lua.

-- `block_names`: for each of KEYS, the name of the Redis key that has its block.
-- `blocks`: the values of these Redis keys, read by one MGET. It is nil if no key of the batch has a block, which is the usual case.
local keys, block_names, blocks = #KEYS, {}, nil
for i = 1, keys do block_names[i] = match(KEYS[i], '^.*:') .. 'blocks' end

local function note_block(number, value)
  check_permission(value)
  if type(value) ~= 'string' then return end
  blocks = blocks or {}
  blocks[number] = value
end

for from = 1, keys, 1000 do
  local to = min(from + 999, keys)
  local values = redis.pcall('MGET', spread(block_names, from, to))
  for number = from, to do
    -- While a Cluster slot moves, the block of a key may be on the other node: then the key is not blocked here.
    if values.err then note_block(number, redis.pcall('GET', block_names[number])) else note_block(number, values[number - from + 1]) end
  end
end

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

local function write_block(number, block_start, block_end, ban_start, ban_end)
  local name, value = block_names[number], format('%.0f %.0f %.0f %.0f', block_start, block_end, ban_start, ban_end)
  local left_ms = blocked_ms(value)
  if left_ms > 0 then
    call('SET', name, value, 'PX', left_ms + longer_ms)
  else
    value = nil
    call('DEL', name)
  end
  blocks = blocks or {}
  for i = 1, keys do
    if block_names[i] == name then blocks[i] = value end
  end
end

-- Answers whether it began, and how long the key is turned away.
local function block(number, is_ban, for_ms)
  local block_start, block_end, ban_start, ban_end = times_of(blocks and blocks[number])
  if not is_ban then
    write_block(number, now, now + for_ms, ban_start, ban_end)
  else
    local left_ms = left_of(ban_start, ban_end)
    if left_ms > 0 then return 0, left_ms end
    write_block(number, block_start, block_end, now, now + for_ms)
  end
  return 1, for_ms
end

local function reset(key, number)
  call('DEL', key, key .. ':holds')
  if blocks and blocks[number] then
    local block_start, block_end = times_of(blocks[number])
    write_block(number, block_start, block_end, 0, 0)
  end
end
