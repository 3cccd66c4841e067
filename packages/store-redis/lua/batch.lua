-- The general script: reads the policies and appends decisions to the reply. blocks.lua, charges.lua and steps.lua follow it. A request
-- alone has a script of its own, lean.lua. Calls of templates (values.lua) are inlined. The functions of these files are no templates.
--
-- KEYS     the keys of the states, in the order of the steps. Then the other keys that the steps use: held units, and what belongs to leases.
--          Their names are derived from those of the states, and so are those of blocks. But blocks are no KEYS: while a Cluster moves a slot, a
--          script waits until all its KEYS have moved
-- ARGV[3]  '1' to return the state with each rejection
-- ARGV[4]  if all steps consume units of different keys under one limit: the length of the last part of the keys. Their states are then read
--          ahead. Else ''
-- ARGV[5]  the number of policies that follow, each as its algorithm's number and the parameters that core names; of a calendar window, then
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
--   'j' <policy> <cost> <n>
--                         consume `cost` units of a key, n times in a row
--   'p' <policy>          peek as a request of cost 1, and take nothing
--   'l' <policy> <id> <want> <member> <ms> <kept>
--                         lease: charge up to `want` units, so that the caller can spend them. At most half of what remains is shared
--                         among the processes that leased the key in the last `ms`. <member> is the caller among them. A record of the
--                         charge is kept for `kept` milliseconds
--   'e' <policy> <id> <spent> <kept>
--                         end a lease: give back all but `spent` units of it. Without a record it does nothing, and no lease begins
--                         under that id
--   'i' <policy>          state of a key: read the state and the block
--   's' <policy> <reserved> <charged at> <instant> <cost> <until>
--                         settle a charge to its real cost; 0 refunds it. <instant> is that of the check that charged. If nothing was
--                         reserved (0), the cost is charged now, and may begin a state. Below 0: so many held units, which end at
--                         <charged at>. <until>: once, by a receipt that is valid until that time, whose mark is the next key; or ''
--   'n' <policy> <reserved> <charged at> <instant> 0 <until>
--                         renew slots: take the units of a charge anew; above the limit too, if they have not come back
--   'd' <n>               delete the state, which is the next n keys (2 if units are held), and lift the ban
--   'b' <kind> <ms>       turn the key away for so long, if kind is 0; if it is 1 begin a ban, unless one is in force
--   'u'                   lift the block and the ban
-- A step takes one key; 'a' and <n> take n per repetition, 'd' takes n, 's' and 'n' take two if they have a receipt. 'b' and 'u' take that of the
-- block, the others that of a state.
--
-- Replies:
--   allowed, no waits     remaining, reset
--   other decisions       -1 (allowed) or -2 (rejected), remaining, retry (-1: never), reset, delay, how far ahead of the clock the
--                         charge counts; after a rejection also the length of the state that it saw, and its numbers
--   held units            as other decisions; the delay is the time until they come back
--   a blocked key         -3 (block) or -4 (ban), how long it is still blocked, and the decision of the limit alone, always with its state
--   'a'                   1 and the decisions if it charged; else 0 and the decisions, each with its state
--   'i'                   the decision of the limit alone for a cost of 1, always with its state; then the four numbers of the block
--   'j'                   the decision of a peek with that cost, always with its state; then how many of the n requests were charged
--   's'                   the change in parts of a unit (negative: a refund), and the parts of a unit
--   'l'                   the units, the processes and the decision of the charge; or 0 units, and the wait until the reset
--   'n'                   1 and the decision; or 0 if the receipt was redeemed or has expired
--   'd', 'e', 'u'         0
--   'b'                   1, or 0 if a ban was in force; and how long the key is turned away
-- A step that fails replies with a string, and only that step fails. If the server is read-only the whole batch fails, and nothing
-- is written.

wants_state = ARGV[3] == '1'
local kind_size = tonumber(ARGV[4])

-- Preallocated tables: growing them would cost more than the decision.
local answer, size = { server_us, nil, nil, nil, nil, nil }, 1
-- The `decide` of each policy, and where its arguments begin.
local policies, policy_args = {}, {}
local arg = 6
local with_holds
for i = 1, tonumber(ARGV[5]) do
  local from = arg
  if ARGV[from] == 'h' then arg = arg + 4 end
  local decide, parameters = decide_at(arg)
  -- The edges of a calendar window are too far from this server's time.
  if not parameters then return decide end
  if from < arg then
    -- Created only for policies that hold units, because creating a function costs about as much as a command.
    with_holds = with_holds or function(decide, holds_ms, longest, window, last_edge)
      return function(key, cost, commit)
HOLDING
      end
    end
    decide = with_holds(decide, tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3]), arg + parameters)
  end
  policies[i], policy_args[i] = decide, arg
  arg = arg + 1 + parameters
end

local function append(ok, allowed, remaining, retry_ms, reset_ms, delay_ms, ahead_ms, state, always)
  if not ok then
    size = append_problem(answer, size, allowed)
    return
  end
  local brief = allowed and not always
  if brief and retry_ms == 0 and delay_ms == 0 and ahead_ms == 0 and remaining <= max_read then
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
