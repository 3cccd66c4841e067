-- Templates to read and write stored values: see src/templates.ts.

-- Reads a value: its birth, then from `first` on a layout byte and numbers of seven bytes, `size` bytes in all. Returns nil if there is
-- none or its size differs. The caller checks the layout: values of older versions and foreign values count as no state. A key of another
-- type is an error.
local function read(key, size)
  local value = prefetched or call('GET', key)
  if not value or #value ~= birth_size + size then value = nil end
  origin = value
  return value
end

-- Runs a command that writes, with three arguments at most. Within a request under several limits `writes` keeps it back.
local function put(command, key, one, two, three)
  if writes then
    local kept = #writes
    writes[kept + 1], writes[kept + 2], writes[kept + 3], writes[kept + 4], writes[kept + 5] = command, key, one, two or false, three or false
  elseif three then
    call(command, key, one, two, three)
  elseif two then
    call(command, key, one, two)
  else
    call(command, key, one)
  end
end

-- Runs the commands that were kept back.
local function put_all()
  local kept = writes
  writes = nil
  for i = 1, #kept, 5 do
    put(kept[i], kept[i + 1], kept[i + 2], kept[i + 3], kept[i + 4])
  end
end

-- Writes a state that expires when it is the same as no state, `reset_ms` from now.
local function write(key, value, reset_ms)
  local birth = origin and sub(origin, 1, birth_size) or pack(birth_format, server_us + check)
  if reset_ms < 1 then reset_ms = 1 end
  put('SET', key, birth .. value, 'PX', reset_ms + longer_ms)
end

-- The start and the end of a block as numbers; zeros if `block` cannot have written them.
local function block_times(from_text, until_text)
  local from_ms, until_ms = tonumber(from_text), tonumber(until_text)
  if not from_ms or from_ms > until_ms or until_ms > deepest or until_ms - from_ms > longest_block then from_ms, until_ms = 0, 0 end
  return from_ms, until_ms
end

-- A block's value is four numbers: the start and the end of the block, then the start and the end of the ban. Two zeros mean no block, or no
-- ban.
local function times_of(value)
  local block_from, block_until, ban_from, ban_until = match(value or '', '^(%d+) (%d+) (%d+) (%d+)$')
  local block_start, block_end = block_times(block_from, block_until)
  local ban_start, ban_end = block_times(ban_from, ban_until)
  return block_start, block_end, ban_start, ban_end
end

-- Fails if a reply says that the user may not run a command. Other errors mean that there is no block.
local function check_permission(reply)
  local problem = type(reply) == 'table' and reply.err
  if problem and (match(problem, 'The user executing') or match(problem, 'ACL failure')) then error(problem, 0) end
end

-- A block that begins more than its own length ahead of the clock is void, as in core's blocks.ts.
local function left_of(from_ms, until_ms)
  local left_ms = until_ms - now
  if left_ms <= 0 or from_ms - now > until_ms - from_ms then left_ms = 0 end
  return left_ms
end

-- How long the key of a block is still turned away, and whether by the ban: by what lasts longer.
local function blocked_ms(value)
  local block_start, block_end, ban_start, ban_end = times_of(value)
  local block_ms = left_of(block_start, block_end)
  local ban_ms = left_of(ban_start, ban_end)
  return max(block_ms, ban_ms), ban_ms > block_ms
end

-- Replaces what a failed step has appended to a reply, from `before` on. Returns the reply's size.
local function append_problem(reply, before, problem)
  -- Redis 7 raises tables, earlier versions raise strings.
  local message = type(problem) == 'table' and problem.err or problem
  if match(message, 'READONLY') then read_only = message end
  for i = #reply, before + 1, -1 do reply[i] = nil end
  reply[before + 1] = message
  writes = nil
  return before + 1
end

-- Appends a decision that is not brief to a reply. Returns the reply's size.
local function append_decision(reply, size, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms)
  reply[size + 1] = allowed and -1 or -2
  reply[size + 2] = remaining <= max_read and remaining or format('%.0f', remaining)
  reply[size + 3] = retry_ms
  reply[size + 4] = reset_ms
  reply[size + 5] = delay_ms
  reply[size + 6] = ahead_ms
  return size + 6
end

-- Appends the length of a state and its numbers.
local function append_state(reply, size, state)
  local count = state and #state or 0
  size = size + 1
  reply[size] = count
  for i = 1, count do reply[size + i] = state[i] <= max_read and state[i] or format('%.0f', state[i]) end
  return size + count
end
