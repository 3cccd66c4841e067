-- Lets Apache 2.4 ask Floodgate's decision server, with mod_lua and LuaSocket. docs/gateways/apache.md has the whole config.

local socket = require "socket"

-- Your settings.
local host, port = "127.0.0.1", 8081
local timeout_seconds = 0.25
local fail_open = true
-- The request headers that your rules read.
local rule_headers = { "X-Api-Key" }
-- Headers that only you may set. Some apps believe them, so the client's own are dropped.
local dropped = {
  "X-User", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
  "X-Original-URL", "X-Rewrite-URL",
}

-- LuaScope thread: each thread of Apache keeps a connection.
local kept

local function close()
  if kept then kept:close() end
  kept = nil
end

-- Text of a client must not add lines to the question.
local function plain(value)
  return (value:gsub("%c", " "))
end

local function question(r)
  local lines = {
    "GET /ask/apache HTTP/1.1",
    "Host: " .. host .. ":" .. port,
    "X-Forwarded-Method: " .. plain(r.method),
    "X-Forwarded-Uri: " .. plain(r.unparsed_uri),
    "X-Forwarded-Host: " .. plain(r.hostname or ""),
    "X-Forwarded-For: " .. plain(r.useragent_ip),
  }
  for _, name in ipairs(rule_headers) do
    local value = r.headers_in[name]
    if value then lines[#lines + 1] = name .. ": " .. plain(value) end
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- One exchange within the deadline. Errors are thrown; "closed" at once means that a kept connection had ended.
local function exchange(text, deadline)
  local function remaining()
    return math.max(0.001, deadline - socket.gettime())
  end
  local function receive(pattern)
    kept:settimeout(remaining(), "t")
    return assert(kept:receive(pattern))
  end

  if not kept then
    kept = assert(socket.tcp())
    kept:settimeout(remaining(), "t")
    assert(kept:connect(host, port))
  end
  kept:settimeout(remaining(), "t")
  assert(kept:send(text))

  local answer = { status = tonumber(receive("*l"):match("^HTTP/1%.%d (%d%d%d)")), headers = {}, body = "" }
  assert(answer.status, "not HTTP")
  for line in function() return receive("*l") end do
    if line == "" then break end
    local name, value = line:match("^([^:%s]+):%s*(.-)%s*$")
    if name then answer.headers[name:lower()] = value end
  end
  local length = answer.status == 204 and 0 or assert(tonumber(answer.headers["content-length"]), "no length")
  -- LuaSocket says "closed" to who reads nothing of a connection that ends.
  if length > 0 then answer.body = receive(length) end
  if (answer.headers["connection"] or ""):lower() == "close" then close() end
  return answer
end

-- The answer, or nil and the reason why it is missing.
local function ask(r)
  local deadline = socket.gettime() + timeout_seconds
  local text = question(r)
  local reused = kept ~= nil
  local done, answer = pcall(exchange, text, deadline)
  if not done then close() end
  if not done and reused and tostring(answer):find("closed") then
    done, answer = pcall(exchange, text, deadline)
    if not done then close() end
  end
  if not done then return nil, tostring(answer) end
  -- A limit, or a request that the decision server refuses, which a client may have made so.
  local denied = answer.headers["x-floodgate-status"] or (answer.headers["content-type"] or ""):find("^application/problem%+json")
  if (answer.status >= 200 and answer.status < 300) or (answer.status >= 400 and answer.status < 500) or denied then return answer end
  return nil, "status " .. answer.status
end

-- Rules count by the headers that the app gets, so what it must not get goes first.
local function clean(r)
  for _, name in ipairs(dropped) do r.headers_in[name] = nil end
  -- CGI, WSGI and PHP take X_Api_Key for X-Api-Key.
  for name in pairs(r:headers_in_table()) do
    if name:find("[^%w-]") then r.headers_in[name] = nil end
  end
  -- mod_proxy drops the headers that Connection names.
  local connection = r.headers_in["Connection"]
  if connection then
    local words = {}
    for word in connection:lower():gmatch("[^%s,]+") do
      if word == "close" or word == "keep-alive" or word == "upgrade" then words[#words + 1] = word end
    end
    r.headers_in["Connection"] = table.concat(words, ", ")
  end
end

local function is_limit_header(name)
  return name:find("^ratelimit") or name:find("^x%-ratelimit") or name == "retry-after"
end

-- LuaHookAccessChecker /etc/apache2/floodgate.lua floodgate
function floodgate(r)
  -- A request that Apache makes itself (an error page, an index) was counted already.
  if not r.is_initial_req then return apache2.DECLINED end
  clean(r)
  local answer, why = ask(r)
  if not answer then
    r:err("The decision server did not answer: " .. why)
    if fail_open then return apache2.DECLINED end
    return 503
  end
  for name, value in pairs(answer.headers) do
    if is_limit_header(name) then r.err_headers_out[name] = value end
  end
  if answer.status < 300 then return apache2.DECLINED end
  r.status = answer.status
  r.content_type = answer.headers["content-type"] or "text/plain"
  r:puts(answer.body)
  return apache2.DONE
end
