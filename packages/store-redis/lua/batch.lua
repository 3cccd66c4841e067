-- The end of the script: reads the policies and the steps, and answers them.
--
-- A step is one of
--   <policy> <n>                          consume 1 unit of each of n keys under the policy of that number, from 1 on
--   'c' <policy> <cost>                   consume so many units
--   'a' <n> (<policy> <cost> <kind>)*n <times>  consume under n limits: all are charged or none; of the kinds 1 and 3, a shadow,
--                                         prevents nothing; of 2 and 3, a look, is never charged; so often, each time of the next n keys
--   'p' <policy>                          look as a request of cost 1 would, and take nothing
--   's' <policy> <reserved> <charged at> <instant> <cost>  change what a decision charged to its real cost; 0 gives all back. The
--                                         instant is the check's that charged
--   'r' ... <until>                       the same once, by a receipt that is valid until that time: the next key is its mark
--   'd'                                   forget the state
-- and takes one key, or n of them; 'r' two.
--
-- A decision that allows without any wait is answered by two numbers, what remains and the wait until the reset; any other by -1
-- where it allows or -2 where not, what remains, the waits until a retry (-1: never) and the reset, the delay, and how far ahead of
-- the clock the charge counts. After a rejection there follows how many numbers of state it saw, and those. 'a' is answered by 1 where it charged, and its decisions; or by 0 and its decisions, each with its state.
-- A settlement is answered by what it charged in addition or, below 0, gave back, in parts of a unit, and by how many parts a unit
-- has; 'd' by 0. A step that fails is answered by a text and fails alone; only where this server takes no writes at all does the
-- whole batch fail, with nothing written.

-- Tables are made with room for what comes: to grow them takes longer than to decide.
local answer, size = { server_us, nil, nil, nil, nil, nil }, 1
local policies = {}
local arg = 5
for i = 1, tonumber(ARGV[4]) do
  local parameters, decide, settle = algorithm(tonumber(ARGV[arg]))
  local policy = { nil, nil, nil, nil, decide = decide, settle = settle }
  for j = 1, parameters do policy[j] = tonumber(ARGV[arg + j]) end
  arg = arg + parameters + 1
  policies[i] = policy
end

local read_only
local function tell(ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, always)
  if not ok then
    -- Redis 7 raises tables, those before it texts.
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
  answer[size + 1] = allowed and -1 or -2
  answer[size + 2] = remaining
  answer[size + 3] = retry_ms
  answer[size + 4] = reset_ms
  answer[size + 5] = delay_ms
  answer[size + 6] = ahead_ms
  size = size + 6
  if brief then return end
  local count = state and #state or 0
  size = size + 1
  answer[size] = count
  for i = 1, count do answer[size + i] = state[i] end
  size = size + count
end

-- Changes a charge. One of another state has nothing to give back; what it owes in addition only a bucket charges, at any time.
local function settle(key, policy, reserved, charged_at, instant, cost)
  local born = call('GETRANGE', key, '0', birth_size - 1)
  if #born < birth_size or unpack(birth_format, born) > instant then
    if cost <= reserved then return 0 end
    charged_at = -math.huge
  end
  return policy.settle(key, policy, charged_at, reserved, cost)
end

-- Changes a charge by its receipt, once: a mark of that stays as long as the receipt is valid.
local function redeem(key, mark, until_ms, ...)
  if now >= until_ms or call('EXISTS', mark) == 1 then return 0 end
  local change, parts = settle(key, ...)
  call('SET', mark, '1', 'PX', ttl(until_ms - now))
  return change, parts
end

local key, last = 0, #ARGV
while arg <= last do
  local step = ARGV[arg]
  local policy = policies[tonumber(step)]
  arg = arg + 1
  if policy then
    local decide = policy.decide
    for _ = 1, tonumber(ARGV[arg]) do
      key = key + 1
      check = key
      tell(pcall(decide, KEYS[key], policy, 1, true))
    end
    arg = arg + 1
  elseif step == 'a' then
    -- Every limit but the first is asked before any is charged; the first is asked and charged at once. What rejects charges
    -- nothing, or logs it where the policy says so.
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
        local ok, allows = pcall(limits[i].decide, KEYS[key + i], limits[i], costs[i], false)
        if not ok then problem = allows end
        whole = whole and (allows or shadows[i])
      end
      size = size + 1
      for i = 1, count do
        local limit, name = limits[i], KEYS[key + i]
        check = key + i
        local commit = whole and not looks[i]
        if not (whole or looks[i] or problem) then
          local ok, allows = pcall(limit.decide, name, limit, costs[i], false)
          commit = ok and not allows
        end
        if not problem then
          local ok, allows, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state = pcall(limit.decide, name, limit, costs[i], commit)
          if ok then
            if i == 1 then
              whole = whole and (allows or shadows[1])
              answer[size] = whole and 1 or 0
            end
            tell(true, allows, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, not whole)
          else
            problem = allows
          end
        end
      end
      if problem then
        for i = before + 1, size do answer[i] = nil end
        size = before
        tell(false, problem)
      end
      key = key + count
    end
  else
    key = key + 1
    check = key
    local policy = policies[tonumber(ARGV[arg])]
    if step == 'c' then
      tell(pcall(policy.decide, KEYS[key], policy, tonumber(ARGV[arg + 1]), true))
      arg = arg + 2
    elseif step == 'p' then
      tell(pcall(policy.decide, KEYS[key], policy, 1, false))
      arg = arg + 1
    elseif step == 's' or step == 'r' then
      local reserved, charged_at = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
      local instant, cost = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
      arg = arg + 5
      local ok, change, parts
      if step == 's' then
        ok, change, parts = pcall(settle, KEYS[key], policy, reserved, charged_at, instant, cost)
      else
        key = key + 1
        ok, change, parts = pcall(redeem, KEYS[key - 1], KEYS[key], tonumber(ARGV[arg]), policy, reserved, charged_at, instant, cost)
        arg = arg + 1
      end
      if ok then
        answer[size + 1] = change
        answer[size + 2] = parts or 1
        size = size + 2
      else
        tell(false, change)
      end
    else
      local ok, problem = pcall(call, 'DEL', KEYS[key])
      if ok then
        size = size + 1
        answer[size] = 0
      else
        tell(false, problem)
      end
    end
  end
end
if read_only then return redis.error_reply(read_only) end
return answer
