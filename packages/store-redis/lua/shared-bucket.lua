-- Templates for the buckets and queues whose parameters are `quota`, `unit`, `flow` and `divisor`: see core's smooth-bucket.ts and, for
-- templates, src/templates.ts.
--
-- A state keeps the largest quota (`most`) and the largest amount of all plans that charged it. A plan is a policy: it has a quota, the
-- parts of a unit, the parts that flow each ms, and the common divisor of both.

-- Converts parts from `from` per unit to `to` per unit: see core's smooth-bucket.ts.
local function rescale(parts, from, to)
  local rescaled = parts
  if from ~= to then
    local whole = floor(parts / from)
    local product = (parts - whole * from) * to
    rescaled = whole * to + (product <= largest and floor(product / from) or 0)
  end
  return rescaled
end

local function divisor_of(most, amount, every)
  local common = 1
  if most * every > 70368744177664 then
    local a, b = amount, every
    while b ~= 0 do a, b = b, a % b end
    common = most * (every / a) <= deepest and a or every
  end
  return common
end

-- Whether the state's numbers are this plan's own.
local function is_own(most, amount)
  return most == quota and amount == flow * divisor
end

-- The parts per unit of a state.
local function shared_unit(most, amount)
  local parts = unit
  local own = is_own(most, amount)
  if not own then
    local every = unit * divisor
    local common = divisor_of(most, amount, every)
    parts = every / common
  end
  return parts
end

-- The milliseconds in which a number of a state's parts flows.
local function shared_takes(most, amount, parts)
  local takes
  local own = is_own(most, amount)
  if own then
    takes = ceil(parts / flow)
  else
    local every = unit * divisor
    local common = divisor_of(most, amount, every)
    takes = amount % common == 0 and ceil(parts / (amount / common)) or ceil(parts / amount) * every
  end
  return takes
end

-- The most parts that a state may lack.
local function shared_deepest(most, amount)
  local parts = shared_unit(most, amount)
  local depth = most_missing(most, amount, unit * divisor, parts)
  return depth
end

-- The milliseconds until the missing parts have flowed in; nil if nothing is missing or the numbers cannot be valid.
local function shared_rest(most, amount, missing)
  local rest
  if missing > 0 and most >= 1 and most <= deepest and amount >= 1 and amount <= largest then
    local depth = shared_deepest(most, amount)
    if missing <= depth then
      rest = shared_takes(most, amount, missing)
    end
  end
  return rest
end

-- Whether another plan can have these numbers: see core's smooth-bucket.ts.
local function is_credible(most, amount)
  local credible = is_own(most, amount)
  if not credible then
    local parts = shared_unit(most, amount)
    local span = shared_takes(most, amount, most * parts)
    credible = span <= max(ceil(quota * unit / flow), longest_debt)
  end
  return credible
end

-- The quota and amount of a state after this plan's charge.
local function noted(most, amount)
  local next_most, next_amount = noted_numbers(quota, flow * divisor, most, amount)
  return next_most, next_amount
end

-- What has flowed under this plan since `time`, in units of `parts` parts, rounded down.
local function flowed_since(time, parts)
  local flowed = 0
  if now > time then
    flowed = rescale((now - time) * flow, unit, parts)
  end
  return flowed
end

-- How far ahead of the clock a state may be when this plan charges it.
local function shared_span(most, amount)
  most, amount = noted(most, amount)
  local parts = shared_unit(most, amount)
  local span = shared_takes(most, amount, most * parts)
  return span
end

-- When a state of that time is the same as no state; nil if it is so now, or if no plan of such numbers can have charged it.
local function shared_end(most, amount, time, rest)
  local end_ms
  local credible = is_credible(most, amount)
  if credible and now < time + rest then end_ms = time + rest end
  if time > now then
    local span = shared_span(most, amount)
    if time - now > span then end_ms = nil end
  end
  return end_ms
end
