/** Warnings to the developer: of Node's process, or on the console of a runtime that has none, such as Workers. */
const WARN_AGAIN_MS = 60_000;

/** `facts`: `code` and `detail`. */
export function warn(message, facts = {}) {
  const { process, console } = globalThis;
  if (typeof process?.emitWarning === 'function') {
    process.emitWarning(message, { type: 'FareboxWarning', ...facts });
  } else {
    console.warn(`FareboxWarning: ${message}`, ...Object.values(facts));
  }
}

/** When the process was last warned, by code: a mistake fails every call. */
const warnedAt = new Map();

/** The default of `onError`. */
export function warnOfCall(error, { tool }) {
  const { code, message } = error;
  if (performance.now() - (warnedAt.get(code) ?? -Infinity) < WARN_AGAIN_MS) return;
  warnedAt.set(code, performance.now());
  const facts = ['outcome', 'requestId', 'idempotencyKey', 'chargeId'].flatMap((name) =>
    error[name] === undefined ? [] : [`${name} ${error[name]}`],
  );
  warn(`A call of "${tool}" ${fateOf(error)}: ${message}`, { code, detail: facts.join(', ') });
}

function fateOf({ code, outcome }) {
  if (outcome === 'unknown') return 'may have been paid';
  if (outcome === 'not_refunded') return 'was paid, but its caller has no result';
  return code === 'service_unavailable' ? 'ran unpaid' : 'cannot be billed';
}
