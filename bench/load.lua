-- What wrk sends, by KIND: `charge` and `batch` charge $0.0001 to consumers drawn at random from KEYS_FILE, PER_REQUEST
-- of them per request; `hold` reserves as much by one request and captures it by another; `read` gets the path of
-- wrk's own URL with KEY.
local kind = os.getenv('KIND')
local per_request = tonumber(os.getenv('PER_REQUEST'))
local key = os.getenv('KEY')
local keys = {}
if kind ~= 'read' then
  for line in io.lines(os.getenv('KEYS_FILE')) do keys[#keys + 1] = line end
end
math.randomseed(tonumber(os.getenv('SEED')))

local function charge()
  return '{"apiKey":"' .. keys[math.random(#keys)] .. '","tool":"search","amount":0.0001}'
end

local function post(path, body)
  local headers = { ['Authorization'] = 'Bearer ' .. key, ['Content-Type'] = 'application/json' }
  return wrk.format('POST', path, headers, body)
end

not_made = 0
captured = 0

if kind == 'read' then
  wrk.headers['Authorization'] = 'Bearer ' .. key
elseif kind == 'charge' then
  function request() return post('/v1/charges', charge()) end
elseif kind == 'hold' then
  local placed = {}
  function request()
    local id = table.remove(placed)
    if id then return post('/v1/holds/' .. id .. '/capture', '{}') end
    return post('/v1/holds', charge())
  end
  function response(_, _, body)
    if body:find('"holdId"', 1, true) then captured = captured + 1
    else placed[#placed + 1] = body:match('"id":"(hld_%x+)"') end
  end
else
  local members = {}
  function request()
    for i = 1, per_request do members[i] = charge() end
    return post('/v1/charges/batch', '{"charges":[' .. table.concat(members, ',') .. ']}')
  end
  -- Each charge of a batch has its own status. For single charges, wrk itself counts responses other than 2xx.
  function response(_, _, body)
    local _, made = body:gsub('"status":201', '')
    not_made = not_made + per_request - made
  end
end

local thread
function setup(started) thread = started end

function done(summary, latency)
  local errors = summary.errors
  local refused = errors.status + errors.timeout + errors.read + errors.connect + thread:get('not_made')
  io.write(string.format('{"requests":%d,"captured":%d,"durationUs":%d,"refused":%d,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, thread:get('captured'), summary.duration, refused, latency:percentile(50), latency:percentile(99)))
end
