-- What wrk sends: a charge of 0.0001 dollars to a consumer drawn at random from KEYS_FILE.
local keys = {}
for key in io.lines(os.getenv('KEYS_FILE')) do keys[#keys + 1] = key end
local headers = {
  ['Authorization'] = 'Bearer ' .. os.getenv('DEVELOPER_KEY'),
  ['Content-Type'] = 'application/json',
}
math.randomseed(tonumber(os.getenv('SEED')))

function request()
  local body = '{"apiKey":"' .. keys[math.random(#keys)] .. '","tool":"search","amount":0.0001}'
  return wrk.format('POST', '/v1/charges', headers, body)
end

function done(summary, latency)
  local refused = summary.errors.status + summary.errors.timeout + summary.errors.read
  io.write(string.format('{"requests":%d,"durationUs":%d,"refused":%d,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, summary.duration, refused, latency:percentile(50), latency:percentile(99)))
end
