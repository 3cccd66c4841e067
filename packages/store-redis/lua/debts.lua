-- Templates for settlements and buckets: see src/templates.ts.

-- The change that a settlement asks for: of a bucket, of a window.
local function change_of(reserved, cost)
  return max(-deepest, min(cost - reserved, deepest))
end

local function window_change_of(reserved, cost)
  return max(63 - largest, min(cost - reserved, largest - 63))
end

-- The most parts that a bucket of `most` units, of `parts` each, may lack if `amount` units are added every `every` ms.
local function most_missing(most, amount, every, parts)
  return min((most + max(most, floor(longest_debt / every) * amount)) * parts, deepest)
end

-- A sliding counter's count after a change (negative: a refund): see core's sliding-window-counter.ts.
local function settled(count, change, most)
  local units = abs(count) + change
  return units > 0 and (count < 0 or change > 0 and units > most) and -units or units
end

-- The refund for a lower real cost in a bucket, in parts: the unexpired reservation minus the unexpired real cost.
local function refund_of(reserved, cost, most, parts, flowed)
  local cut = max(reserved - most, 0)
  return max((reserved - cut) * parts - flowed, 0) - max(max(cost - cut, 0) * parts - flowed, 0)
end

-- The quota and amount of a state after a plan's charge. Without a quota, the plan begins the state.
local function noted_numbers(plan_most, plan_amount, most, amount)
  if not most then
    most, amount = plan_most, plan_amount
  else
    if most < plan_most then most = plan_most end
    if amount < plan_amount then amount = plan_amount end
  end
  return most, amount
end
