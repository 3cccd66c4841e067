-- Settles charges, ends leases and blocks keys. A part of the general script: see batch.lua. A run creates these functions when a step needs
-- them, because that takes longer than a decision.

-- Stops holding units that end at a time, if they are still held, and charges the cost.
local function settle_held(key, policy_arg, units, ends, instant, cost)
  local list, released = key .. ':holds', 0
  local born = call('GETRANGE', list, '0', birth_size - 1)
  if #born == birth_size and unpack(birth_format, born) <= instant then
    local value, place, held, at = open_held(list, tonumber(ARGV[policy_arg - 2]))
    local left = value
    while ends > at and place < #value do
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
    if cost <= reserved then return 0, 1 end
    charged_at = -huge
  end
  return settle_at(policy_arg)(key, charged_at, reserved, cost)
end

-- Settles a charge, or renews its slots with `decide`. By a receipt it settles once, and marks the receipt. After a renewal the mark says when
-- the slots were taken, and the instant, so that the receipt finds them. A mark lives as long as the receipt is valid, or its slots are held.
-- Returns the change, the parts of a unit, and the decision of a renewal unless the receipt was redeemed or has expired.
local function change_charge(key, mark, until_ms, policy_arg, reserved, charged_at, instant, cost, decide)
  local note = mark and call('GET', mark)
  if note then
    charged_at, instant = match(note, '^(%d+) (%d+)$')
  elseif mark and now >= until_ms then
    charged_at = nil
  end
  if not charged_at then return 0, 1 end
  local change, parts = settle(key, policy_arg, reserved, tonumber(charged_at), tonumber(instant), cost)
  -- A receipt that has expired takes no slots again.
  if decide and mark and change == 0 and now >= until_ms then return 0, 1 end
  local renewed = decide and { decide(key, reserved, true, change ~= 0) }
  if mark and not decide then
    call('SET', mark, '1', 'PX', max(until_ms - now, 1) + longer_ms)
  elseif mark and renewed[1] then
    call('SET', mark, format('%.0f %.0f', now + renewed[6], server_us + check), 'PX', max(until_ms - now, renewed[4]) + longer_ms)
  end
  return change, parts, renewed
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

-- Appends the one or two numbers that a change answers (0 if it answers none), or why it failed.
local function append_change(ok, one, two)
  if not ok then return append(false, one) end
  answer[size + 1], answer[size + 2] = one or 0, two
  size = size + (two and 2 or 1)
end

local function reset(number, count)
  call('DEL', spread(KEYS, number, number + count - 1))
  if blocks and blocks[number] then
    local block_start, block_end = times_of(blocks[number])
    write_block(number, block_start, block_end, 0, 0)
  end
end
