-- Lets HAProxy 2.6 or newer ask Floodgate's decision server. docs/gateways/haproxy.md has the whole config.
--
--   http-request lua.floodgate open x-api-key,x-user
--
-- The first word says what happens if the decision server does not answer: open (the request passes) or closed (503). The second one is the
-- list of the request headers that the decision server gets, or the word none.

local url = "http://floodgate/ask/haproxy"
-- The address after "bind" in "listen floodgate".
local address = "abns@floodgate"

-- The deadlines of "listen floodgate" are shorter. A client that times out itself would ask again, and be counted again.
local last_resort_ms = 30000

local function question(txn, rule_headers)
  local sent = txn.http:req_get_headers()
  local headers = {
    ["x-forwarded-method"] = { txn.f:method() },
    ["x-forwarded-uri"] = { txn.f:pathq() },
    ["x-forwarded-for"] = { txn.f:src() },
  }
  if sent["host"] then headers["x-forwarded-host"] = { sent["host"][0] } end
  for name in rule_headers:gmatch("[^,]+") do
    -- HAProxy counts from 0. Two lines tell that the app may read another one than the rules. HAProxy's Lua client has no room for all.
    if sent[name] then headers[name] = { sent[name][0], sent[name][1] } end
  end
  return headers
end

-- Rules count by the headers that the app gets, and a proxy in front of the app drops those that Connection names.
local function clean_connection(txn)
  local lines = txn.http:req_get_headers()["connection"]
  if not lines then return end
  local upgrades = false
  for i = 0, #lines do upgrades = upgrades or lines[i]:lower():find("upgrade", 1, true) end
  txn.http:req_del_header("Connection")
  if upgrades then txn.http:req_add_header("Connection", "upgrade") end
end

-- Asks the decision server. Returns nil if the server is down or fails. Other unexpected answers are caused by the client's request.
local function ask(txn, rule_headers)
  local asked, answer = pcall(function()
    return core.httpclient():get({ url = url, dst = address, headers = question(txn, rule_headers), timeout = last_resort_ms })
  end)
  -- HAProxy cannot send it: the headers are larger than its buffer.
  if not asked then return { status = 431, headers = {} } end
  if not answer or not answer.headers then return nil end
  if (answer.status >= 200 and answer.status < 300) or (answer.status >= 400 and answer.status < 500) then return answer end
  local kind = answer.headers["content-type"]
  if answer.headers["x-floodgate-status"] or (kind and kind[0]:find("^application/problem%+json")) then return answer end
  return nil
end

-- At most one line a second.
local last_complaint
local function complain(on_failure)
  local now = core.now().sec
  if now == last_complaint then return end
  last_complaint = now
  local result = on_failure == "closed" and "are answered 503" or "pass without limits"
  core.log(core.err, "floodgate: no answer from the decision server, by way of " .. address .. ". Requests " .. result .. ".")
end

local function is_limit_header(name)
  return name:find("^ratelimit") or name:find("^x%-ratelimit")
end

local function for_client(name)
  return is_limit_header(name) or name == "retry-after" or name == "content-type"
end

core.register_action("floodgate", { "http-req" }, function(txn, on_failure, rule_headers)
  clean_connection(txn)
  local answer = ask(txn, rule_headers == "none" and "" or rule_headers:lower())
  if answer == nil then
    complain(on_failure)
    if on_failure == "closed" then txn:done(txn:reply({ status = 503 })) end
  elseif answer.status < 300 then
    txn:set_priv(answer.headers)
  else
    local reply = txn:reply({ status = answer.status, body = answer.body })
    for name, values in pairs(answer.headers) do
      if for_client(name) then
        for i = 0, #values do reply:add_header(name, values[i]) end
      end
    end
    txn:done(reply)
  end
end, 2)

core.register_action("floodgate-headers", { "http-res" }, function(txn)
  for name, values in pairs(txn:get_priv() or {}) do
    if is_limit_header(name) then
      for i = 0, #values do txn.http:res_add_header(name, values[i]) end
    end
  end
end, 0)
