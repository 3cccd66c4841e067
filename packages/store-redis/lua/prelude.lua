-- The first part of every script: what all of them read from their arguments. src/script.ts says how the scripts are put together.
--
-- A script runs one or more steps in order and atomically. Portable Lua 5.1: no flags, no module except `struct`. Numbers are whole
-- and below 2^53. Convert them with '%.0f' or let redis.call do it (17 digits); tostring keeps only 14 digits.
--
-- ARGV[1]  not after: past this server time in milliseconds the script does nothing, because its callers have timed out
-- ARGV[2]  the time in milliseconds since the epoch. This server's own if it is '' or missing
-- KEYS and the other arguments: see lean.lua and batch.lua
--
-- Returns a flat list: the server's time in microseconds and, unless that is past ARGV[1], the replies of the steps. See batch.lua.
local KEYS, ARGV = KEYS, ARGV
local call = redis.call
local pcall = pcall
local tonumber = tonumber
local floor = math.floor
local ceil = math.ceil
local min = math.min
local max = math.max
local abs = math.abs
local huge = math.huge
local format = string.format
local byte = string.byte
local rep = string.rep
local sub = string.sub
local match = string.match
local pack = struct.pack
local spread = unpack
local unpack = struct.unpack
local concat = table.concat

local time_of_day = call('TIME')
local server_us = time_of_day[1] * 1000000 + time_of_day[2]
local server_ms = (server_us - server_us % 1000) / 1000
if server_ms > tonumber(ARGV[1]) then return { server_us } end

-- Redis does not expire keys by an injected clock. So with one, keys live a minute longer, and each write renews their expiry.
local now, steady, longer_ms = server_ms, true, 0
if (ARGV[2] or '') ~= '' then now, steady, longer_ms = tonumber(ARGV[2]), false, 60000 end
-- Whether a rejection returns its state, for the client's deny cache. 'whole' while a key is inspected: then the state is returned always,
-- and of a log up to a thousand of its newest entries.
local wants_state

-- Each check has an instant: the server's microseconds at the start of the run plus the index of its key. A stored value begins with
-- the instant of the check that created the state (its birth, seven bytes). A charge belongs to the stored state if the charge's
-- instant is not earlier; else its state was reset, evicted or has expired.
local birth_format, birth_size = '>I7', 7
-- A state's own bytes begin here, with its layout: see `read`.
local first = birth_size + 1
-- The index of the current key, and the stored value that the current state comes from. Algorithms set `origin` to nil if the state no
-- longer counts: then the next charge begins a new state.
local check, origin
-- The stored value of the current key, if it has been read already.
local prefetched
-- While a request under several limits is decided: the commands that write, each as five values. See `put`.
local writes
-- The error of a server that takes no writes.
local read_only

-- Bounds of settlements, as in core's debt.ts: the largest exact integer, the deepest debt of a log or a bucket, and the
-- milliseconds in which a bucket pays off its largest debt.
local largest, deepest, longest_debt = 9007199254740991, 4503599627370496, 315360000000
-- The largest integer that every client reads right: ioredis and redis compute with 48 more. Larger ones are sent as texts.
local max_read = 9007199254740928
-- The longest block: the longest duration.
local longest_block = 1125899906842624
