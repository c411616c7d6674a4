/**
 * Reads the consumer's key from a request to a tool server (specification sections 4.3 and 5). Some MCP hosts cannot
 * send X-Service-Key, so a bearer token that looks like a consumer's key also counts.
 */
const BEARER = /^bearer +(\S+)$/i;
const CONSUMER_KEY = /^[a-z]{2,12}_ck_(?:live|test)_[0-9A-Za-z]{38}$/;

export function serviceKeyOf(headers) {
  const serviceKey = read(headers, 'x-service-key');
  // Sent twice, it names two payers: an array, or one value joined by a comma.
  if (serviceKey !== undefined) return /^[^\s,]+$/.test(serviceKey) ? serviceKey : undefined;
  const token = BEARER.exec(read(headers, 'authorization') ?? '')?.[1];
  return token !== undefined && CONSUMER_KEY.test(token) ? token : undefined;
}

/** The value of a header; '' when it was sent more than once, `undefined` when it was not sent. */
function read(headers, name) {
  const value = typeof headers.get === 'function' ? headers.get(name) : headers[name];
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : '';
}
