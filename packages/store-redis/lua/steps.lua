-- Runs the steps and replies. The last part of the general script: batch.lua describes the steps and the reply.

local key, last = 0, #ARGV
-- Of the 'a' at hand: the number of its limits, their functions, costs and kinds, and the size of the reply before it. `decide_all` decides it.
local count, limits, costs, shadows, looks, before, decide_all
local change_charge, end_lease, block, write_block, reset, append_change
while arg <= last do
  local step = ARGV[arg]
  local decide = policies[tonumber(step)]
  arg = arg + 1
  if not block and match(step, '^[bdensu]$') then
    change_charge, end_lease, block, write_block, reset, append_change = changes()
  end
  if decide or step == 'c' or step == 'p' then
    local takes, cost, times = step ~= 'p', 1, 1
    if decide then
      times = tonumber(ARGV[arg])
    else
      decide = policies[tonumber(ARGV[arg])]
      if takes then
        arg = arg + 1
        cost = tonumber(ARGV[arg])
      end
    end
    arg = arg + 1
    for _ = 1, times do
      key = key + 1
      check, prefetched = key, states[key]
      local left_ms = blocks and blocked_at(key) or 0
      if left_ms > 0 then
        append_blocked(key, pcall(decide, KEYS[key], cost, false))
      else
        append(pcall(decide, KEYS[key], cost, takes))
      end
    end
  elseif step == 'a' then
    count, limits, costs, shadows, looks = tonumber(ARGV[arg]), {}, {}, {}, {}
    for i = 1, count do
      local at = arg + 3 * i - 2
      limits[i], costs[i] = policies[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
      local kind = tonumber(ARGV[at + 2])
      shadows[i], looks[i] = kind % 2 == 1, kind >= 2
    end
    arg = arg + 2 + 3 * count
    decide_all = decide_all or function()
      local whole, rejects = true, {}
      -- As in lean.lua: the writes of the first round wait for all limits, and a second one follows a rejection.
      writes = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
      for _ = 1, 2 do
        size = before + 1
        -- A hole would hide the rest from `#`, by which `append_problem` finds what it removes.
        answer[size] = 0
        local passes = true
        for i = 1, count do
          check = key + i
          local left_ms = blocks and blocked_at(check) or 0
          local commit = left_ms == 0 and not looks[i] and (whole or rejects[i])
          local allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = limits[i](KEYS[check], costs[i], commit)
          rejects[i] = not allowed
          passes = passes and (allowed and left_ms == 0 or shadows[i])
          if left_ms > 0 then
            append_blocked(check, true, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state)
          else
            append(true, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, not whole)
          end
        end
        if not writes then break end
        whole = passes
        if whole then
          put_all()
          answer[before + 1] = 1
          break
        end
        writes = nil
      end
    end
    for _ = 1, tonumber(ARGV[arg - 1]) do
      before = size
      local ok, problem = pcall(decide_all)
      if not ok then
        size = append_problem(answer, before, problem)
      end
      key = key + count
    end
  elseif step == 'b' then
    key = key + 1
    append_change(pcall(block, key, ARGV[arg] == '1', tonumber(ARGV[arg + 1])))
    arg = arg + 2
  elseif step == 'u' then
    key = key + 1
    append_change(pcall(write_block, key, 0, 0, 0, 0))
  elseif step == 'd' then
    local deleted = tonumber(ARGV[arg])
    append_change(pcall(reset, key + 1, deleted))
    key, arg = key + deleted, arg + 1
  else
    key = key + 1
    check, prefetched = key, states[key]
    local policy = tonumber(ARGV[arg])
    decide = policies[policy]
    if step == 'j' then
      local cost, times = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
      arg = arg + 3
      local before, charged = wants_state, 0
      wants_state = true
      local ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = pcall(decide, KEYS[key], cost, false)
      wants_state = before
      if blocks and blocked_at(key) > 0 then
        append_blocked(key, ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state)
      else
        -- Requests of one moment leave the state that one request of the sum of their costs leaves.
        if ok and allowed then
          charged = min(times, floor(remaining / cost))
          local problem
          ok, problem = pcall(decide, KEYS[key], charged * cost, true)
          if not ok then allowed = problem end
        end
        append(ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, true)
      end
      if ok then
        size = size + 1
        answer[size] = charged
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
      append_change(pcall(end_lease, KEYS[key], ARGV[arg + 1], policy_args[policy], tonumber(ARGV[arg + 2]), ARGV[arg + 3]))
      arg = arg + 4
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
    else
      local reserved, charged_at = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
      local instant, cost, until_ms = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4]), tonumber(ARGV[arg + 5])
      arg = arg + 6
      if until_ms then key = key + 1 end
      local renew = step == 'n' and decide
      local ok, change, parts, renewed =
        pcall(change_charge, KEYS[check], until_ms and KEYS[key], until_ms, policy_args[policy], reserved, charged_at, instant, cost, renew)
      if not (renew and ok) then
        append_change(ok, change, parts)
      else
        size = size + 1
        answer[size] = renewed and 1 or 0
        if renewed then append(true, spread(renewed)) end
      end
    end
  end
end
if read_only then return redis.error_reply(read_only) end
return answer
