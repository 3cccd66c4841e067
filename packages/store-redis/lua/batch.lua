-- The last part of the general script: reads the policies, runs the steps and builds the reply. A consume alone has a script of its own,
-- lean.lua. Calls of templates (values.lua) are inlined. The functions of this file are no templates.
--
-- KEYS     the keys of the states, in the order of the steps. The names of their blocks are derived from them: on a Cluster, a script with
--          several keys fails while their slot moves
-- ARGV[3]  '1' to return the state with each rejection
-- ARGV[4]  the number of policies that follow, each as its algorithm's number and the parameters that core names; of a calendar window, then
--          its edges. Before a policy whose units are held: 'h', how long this one holds them (0: it charges them at once), the longest time,
--          and the length of its fixed windows; 0 for calendar windows, -1 for others
-- ARGV...  the steps
--
-- A step is one of
--   <policy> <n>          consume 1 unit of each of the next n keys. <policy> is an index, from 1
--   'c' <policy> <cost>   consume `cost` units
--   'a' <n> (<policy> <cost> <kind>)*n <times>
--                         consume under n limits, all or none. kind: +1 shadow (never rejects), +2 dry run (never charged).
--                         Repeated `times` times, each time with the next n keys
--   'p' <policy>          peek as a request of cost 1, and take nothing
--   'l' <policy> <id> <want> <member> <ms> <kept>
--                         lease: charge up to `want` units, so that the caller can spend them. At most half of what remains is shared
--                         among the processes that leased the key in the last `ms`. <member> is the caller among them. A record of the
--                         charge is kept for `kept` milliseconds
--   'e' <policy> <id> <spent> <kept>
--                         end a lease: give back all but `spent` units of it. Without a record it does nothing, and no lease begins
--                         under that id
--   'i' <policy>          state of a key: read the state and the block
--   's' <policy> <reserved> <charged at> <instant> <cost>
--                         settle a charge to its real cost; 0 refunds it. <instant> is that of the check that charged. If nothing was
--                         reserved (0), the cost is charged now, and may begin a state. Below 0: so many held units, which end at
--                         <charged at>
--   'r' ... <until>       as 's', but once: by a receipt that is valid until that time. The next key is the receipt's mark
--   'n' <policy> <units> <charged at> <instant>
--                         renew slots: take the units of a charge anew; above the limit too, if they have not come back
--   'd'                   delete the state, and lift the ban
--   'b' <kind> <ms>       turn the key away for so long, if kind is 0; if it is 1 begin a ban, unless one is in force
--   'u'                   lift the block and the ban
-- A step takes one key; 'a' and <n> take n per repetition, 'r' takes two. 'b' and 'u' take that of the block, the others that of a state.
--
-- Replies:
--   allowed, no waits     remaining, reset
--   other decisions       -1 (allowed) or -2 (rejected), remaining, retry (-1: never), reset, delay, how far ahead of the clock the
--                         charge counts; after a rejection also the length of the state that it saw, and its numbers
--   held units            as other decisions; the delay is the time until they come back
--   a blocked key         -3 (block) or -4 (ban), how long it is still blocked, and the decision of the limit alone, always with its state
--   'a'                   1 and the decisions if it charged; else 0 and the decisions, each with its state
--   'i'                   the decision of the limit alone for a cost of 1, always with its state; then the four numbers of the block
--   's', 'r'              the change in parts of a unit (negative: a refund), and the parts of a unit
--   'l'                   the units, the processes and the decision of the charge; or 0 units, and the wait until the reset
--   'd', 'e', 'u'         0
--   'b'                   1, or 0 if a ban was in force; and how long the key is turned away
-- A step that fails replies with a string, and only that step fails. If the server is read-only the whole batch fails, and nothing
-- is written.

wants_state = ARGV[3] == '1'

-- Preallocated tables: growing them would cost more than the decision.
local answer, size = { server_us, nil, nil, nil, nil, nil }, 1
-- The `decide` of each policy, and where its arguments begin.
local policies, policy_args = {}, {}
local arg = 5
local with_holds
for i = 1, tonumber(ARGV[4]) do
  local from = arg
  if ARGV[from] == 'h' then arg = arg + 4 end
  local decide, parameters = decide_at(arg)
  -- The edges of a calendar window are too far from this server's time.
  if not parameters then return decide end
  if from < arg then
    -- Created only for policies that hold units, because creating a function costs about as much as a command.
    with_holds = with_holds or function(decide, holds_ms, longest, window, last_edge)
      return function(key, cost, commit)
        local list, shows = key .. ':holds', wants_state == 'whole'
        local value, place, held, at = open_held(list, longest)
        local born = origin
        local allowed, remaining, retry, reset, delay, ahead, state = decide(key, held + cost, false)
        local limit_ms = reset
        local entries = (#value + 1 - place) / 14
        if held < 1 then entries = 0 end
        if holds_ms > 0 and entries >= 10000 then allowed = false end
        local ends_in = 0
        if commit and allowed and holds_ms > 0 then
          local ends = at + holds_ms
          -- The edges of a calendar window are its last parameters.
          for i = last_edge - 3, window == 0 and last_edge or 0 do
            local edge = tonumber(ARGV[i])
            if edge > now + ahead then ends = min(ends, edge) end
          end
          if window > 0 then ends = min(ends, (floor((now + ahead) / window) + 1) * window) end
          local stop, units, found, others = #value - 13, cost, nil, nil
          while stop >= place and entries > 0 do
            found, others = unpack('>i7I7', value, stop)
            if found <= ends then break end
            stop = stop - 14
          end
          local after = entries > 0 and sub(value, stop + 14) or ''
          if entries > 0 and stop >= place and found == ends then
            stop, units = stop - 14, units + others
          end
          local before = entries > 0 and sub(value, place, stop + 13) or ''
          held, origin = held + cost, born
          value = before .. pack('>i7I7', ends, units) .. after
          entries, place = #value / 14, 1
          local newest = unpack('>i7I7', value, #value - 13)
          write(list, pack('>BI7', 9, held) .. value, newest - now)
          ends_in = ends - now
        elseif commit and allowed then
          allowed, remaining, retry, limit_ms, delay, ahead = decide(key, cost, true)
        end
        remaining, reset, retry = max(remaining - held, 0), limit_ms, 0
        if entries > 0 then
          local newest = unpack('>i7I7', value, #value - 13)
          reset = max(reset, newest - now)
        end
        -- The wait once so many entries have ended: until then, and by the limit itself.
        local function wait_after(ended)
          local left, until_ms = held, now
          for i = 0, ended - 1 do
            local ends, units = unpack('>i7I7', value, place + 14 * i)
            left, until_ms = left - units, ends
          end
          local _, _, wait = decide(key, left + cost, false)
          if wait < 0 then wait = huge end
          return wait, until_ms - now
        end
        local full = holds_ms > 0 and entries >= 10000
        if cost > remaining or full then
          local least = full and 1 or 0
          local low, high = least, entries
          while low < high do
            local middle = floor((low + high) / 2)
            local wait, until_ms = wait_after(middle)
            if wait <= until_ms then high = middle else low = middle + 1 end
          end
          local wait, until_ms = wait_after(low)
          retry = max(wait, until_ms)
          if low > least then retry = min(retry, (wait_after(low - 1))) end
          if retry == huge then retry = -1 end
        end
        if shows then
          local cells = { entries, held }
          for i = 0, entries - 1 do cells[#cells + 1], cells[#cells + 2] = unpack('>i7I7', value, place + 14 * i) end
          for _, cell in ipairs(state) do cells[#cells + 1] = cell end
          state = cells
        else
          state = nil
        end
        return allowed, remaining, retry, reset, ends_in, ahead, state
      end
    end
    decide = with_holds(decide, tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3]), arg + parameters)
  end
  policies[i], policy_args[i] = decide, arg
  arg = arg + 1 + parameters
end

local read_only
local function append(ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, always)
  if not ok then
    -- Redis 7 raises tables, earlier versions raise strings.
    local problem = type(allowed) == 'table' and allowed.err or allowed
    if string.find(problem, 'READONLY', 1, true) then read_only = problem end
    size = size + 1
    answer[size] = problem
    return
  end
  local brief = allowed and not always
  if brief and retry_ms == 0 and delay_ms == 0 and ahead_ms == 0 then
    answer[size + 1] = remaining
    answer[size + 2] = reset_ms
    size = size + 2
    return
  end
  size = append_decision(answer, size, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms)
  if not brief then
    size = append_state(answer, size, state)
  end
end

-- `block_names` has the key of the block for each of the keys. `blocks` has their values, and is nil if there are none: most batches pay
-- one MGET for all of them.
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

-- Stops holding units that end at a time, if they are still held, and charges the cost.
local function settle_held(key, policy_arg, units, ends, instant, cost)
  local list, released = key .. ':holds', 0
  local born = call('GETRANGE', list, '0', birth_size - 1)
  if #born == birth_size and unpack(birth_format, born) <= instant then
    local value, place, held, at = open_held(list, tonumber(ARGV[policy_arg - 2]))
    local left = value
    while held > 0 and ends > at and place < #value do
      local found, others = unpack('>i7I7', value, place)
      if found == ends then
        released = min(units, others)
        local rest = others > released and pack('>i7I7', ends, others - released) or ''
        left = sub(value, 16, place - 1) .. rest .. sub(value, place + 14)
        break
      end
      place = place + 14
    end
    if released > 0 and (left == '' or held <= released) then
      call('DEL', list)
    elseif released > 0 then
      local total = unpack('>I7', value, 9) - released
      local newest = unpack('>i7I7', left, #left - 13)
      write(list, pack('>BI7', 9, total) .. left, newest - now)
    end
  end
  local change, parts = 0, 1
  if cost > 0 then change, parts = settle_at(policy_arg)(key, now, 0, cost) end
  return change - released * parts, parts
end

-- Settles a charge. A charge to an earlier state refunds nothing; only a bucket still charges a higher cost.
local function settle(key, policy_arg, reserved, charged_at, instant, cost)
  if reserved < 0 then return settle_held(key, policy_arg, -reserved, charged_at, instant, cost) end
  local born = call('GETRANGE', key, '0', birth_size - 1)
  if #born < birth_size or unpack(birth_format, born) > instant then
    if cost <= reserved then return 0 end
    charged_at = -huge
  end
  return settle_at(policy_arg)(key, charged_at, reserved, cost)
end

-- Settles a charge by its receipt, once. The mark lives as long as the receipt is valid.
local function redeem(key, mark, until_ms, ...)
  if now >= until_ms or call('EXISTS', mark) == 1 then return 0 end
  local change, parts = settle(key, ...)
  call('SET', mark, '1', 'PX', until_ms - now + longer_ms)
  return change, parts
end

-- Ends a lease. The record goes with its charge, so that this happens once.
local function end_lease(key, id, policy_arg, spent, kept_ms)
  local record = key .. ':lease-' .. id
  local units, charged_at, instant = match(call('GET', record) or '', '^(%d+) (%d+) (%d+)$')
  if units then
    settle(key, policy_arg, tonumber(units), tonumber(charged_at), tonumber(instant), spent)
    call('DEL', record)
  else
    call('SET', record, '', 'PX', kept_ms)
  end
end

local key, last = 0, #ARGV
while arg <= last do
  local step = ARGV[arg]
  local decide = policies[tonumber(step)]
  arg = arg + 1
  if decide then
    for _ = 1, tonumber(ARGV[arg]) do
      key = key + 1
      check = key
      local left_ms = blocks and blocked_at(key) or 0
      if left_ms > 0 then
        append_blocked(key, pcall(decide, KEYS[key], 1, false))
      else
        append(pcall(decide, KEYS[key], 1, true))
      end
    end
    arg = arg + 1
  elseif step == 'a' then
    -- All other limits are checked before any is charged; the first one is checked and charged in one go. A limit that
    -- rejects charges nothing, except that it logs the request with countRejected.
    local count = tonumber(ARGV[arg])
    local limits, costs, shadows, looks = {}, {}, {}, {}
    for i = 1, count do
      local at = arg + 3 * i - 2
      limits[i], costs[i] = policies[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
      local kind = tonumber(ARGV[at + 2])
      shadows[i], looks[i] = kind % 2 == 1, kind >= 2
    end
    arg = arg + 2 + 3 * count
    for _ = 1, tonumber(ARGV[arg - 1]) do
      local before, whole, problem = size, true, nil
      for i = 2, count do
        local ok, allows = pcall(limits[i], KEYS[key + i], costs[i], false)
        if not ok then problem = allows end
        if blocks and blocked_at(key + i) > 0 then allows = false end
        whole = whole and (allows or shadows[i])
      end
      size = size + 1
      for i = 1, count do
        local limit, name = limits[i], KEYS[key + i]
        check = key + i
        local left_ms = blocks and blocked_at(key + i) or 0
        local commit = whole and not looks[i] and left_ms == 0
        if not (whole or looks[i] or problem or left_ms > 0) then
          local ok, allows = pcall(limit, name, costs[i], false)
          commit = ok and not allows
        end
        if not problem then
          local ok, allows, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = pcall(limit, name, costs[i], commit)
          if ok then
            if i == 1 then
              whole = whole and (allows and left_ms == 0 or shadows[1])
              answer[size] = whole and 1 or 0
            end
            if left_ms > 0 then
              append_blocked(key + i, true, allows, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state)
            else
              append(true, allows, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, not whole)
            end
          else
            problem = allows
          end
        end
      end
      if problem then
        for i = before + 1, size do answer[i] = nil end
        size = before
        append(false, problem)
      end
      key = key + count
    end
  elseif step == 'b' or step == 'u' then
    key = key + 1
    local ok, begun, left_ms
    if step == 'b' then
      ok, begun, left_ms = pcall(block, key, ARGV[arg] == '1', tonumber(ARGV[arg + 1]))
      arg = arg + 2
    else
      ok, begun = pcall(write_block, key, 0, 0, 0, 0)
    end
    if ok then
      answer[size + 1] = begun or 0
      answer[size + 2] = left_ms
      size = size + (left_ms and 2 or 1)
    else
      append(false, begun)
    end
  else
    key = key + 1
    check = key
    local policy = tonumber(ARGV[arg])
    decide = policies[policy]
    if step == 'c' or step == 'p' then
      local takes = step == 'c'
      local cost = takes and tonumber(ARGV[arg + 1]) or 1
      arg = arg + (takes and 2 or 1)
      local left_ms = blocks and blocked_at(key) or 0
      if left_ms > 0 then
        append_blocked(key, pcall(decide, KEYS[key], cost, false))
      else
        append(pcall(decide, KEYS[key], cost, takes))
      end
    elseif step == 'l' then
      local record, want = KEYS[key] .. ':lease-' .. ARGV[arg + 1], tonumber(ARGV[arg + 2])
      local member, counted_ms, kept_ms = ARGV[arg + 3], tonumber(ARGV[arg + 4]), ARGV[arg + 5]
      arg = arg + 6
      -- Charges nothing before all else has worked.
      local function lease()
        if blocks and blocked_at(key) > 0 or call('EXISTS', record) == 1 then return 0, 0, 0 end
        local _, remaining, _, reset_ms = decide(KEYS[key], 1, false)
        local members, time = KEYS[key] .. ':leases', format('%.0f', server_ms)
        call('ZADD', members, time, member)
        call('ZREMRANGEBYSCORE', members, '-inf', format('(%.0f', server_ms - counted_ms))
        call('PEXPIRE', members, format('%.0f', counted_ms))
        local processes = call('ZCARD', members)
        local units = min(want, floor(remaining / (2 * processes)))
        if units < 2 then return 0, processes, reset_ms end
        local charged = { decide(KEYS[key], units, true) }
        call('SET', record, format('%.0f %.0f %.0f', units, now + charged[6], server_us + check), 'PX', kept_ms)
        return units, processes, spread(charged)
      end
      local ok, units, processes, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms = pcall(lease)
      if not ok then
        append(false, units)
      elseif units == 0 then
        answer[size + 1], answer[size + 2] = 0, allowed
        size = size + 2
      else
        answer[size + 1], answer[size + 2] = units, processes
        size = size + 2
        append(true, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms)
      end
    elseif step == 'e' then
      local ok, problem = pcall(end_lease, KEYS[key], ARGV[arg + 1], policy_args[policy], tonumber(ARGV[arg + 2]), ARGV[arg + 3])
      arg = arg + 4
      if ok then
        size = size + 1
        answer[size] = 0
      else
        append(false, problem)
      end
    elseif step == 'i' then
      local before = wants_state
      wants_state = 'whole'
      local ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = pcall(decide, KEYS[key], 1, false)
      wants_state = before
      arg = arg + 1
      append(ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, true)
      if ok then
        local block_start, block_end, ban_start, ban_end = times_of(blocks and blocks[key])
        answer[size + 1], answer[size + 2], answer[size + 3], answer[size + 4] = block_start, block_end, ban_start, ban_end
        size = size + 4
      end
    elseif step == 'n' then
      local units, charged_at, instant = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2]), tonumber(ARGV[arg + 3])
      local ok, change = pcall(settle, KEYS[key], policy_args[policy], units, charged_at, instant, 0)
      if ok then append(pcall(decide, KEYS[key], units, true, change ~= 0)) else append(false, change) end
      arg = arg + 4
    elseif step == 's' or step == 'r' then
      local reserved, charged_at = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
      local instant, cost = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
      arg = arg + 5
      local ok, change, parts
      if step == 's' then
        ok, change, parts = pcall(settle, KEYS[key], policy_args[policy], reserved, charged_at, instant, cost)
      else
        key = key + 1
        ok, change, parts = pcall(redeem, KEYS[key - 1], KEYS[key], tonumber(ARGV[arg]), policy_args[policy], reserved, charged_at, instant, cost)
        arg = arg + 1
      end
      if ok then
        answer[size + 1] = change
        answer[size + 2] = parts or 1
        size = size + 2
      else
        append(false, change)
      end
    else
      local ok, problem = pcall(reset, KEYS[key], key)
      if ok then
        size = size + 1
        answer[size] = 0
      else
        append(false, problem)
      end
    end
  end
end
if read_only then return redis.error_reply(read_only) end
return answer
