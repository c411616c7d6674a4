/** Warnings to the developer: of the process, or on the console of a runtime that would not print those. */
const WARN_AGAIN_MS = 60_000;
/** How many different warnings are remembered. */
const WARNED_MAX = 1_000;
/** The process of a Worker has the method, but prints nothing. */
const isWorker = globalThis.navigator?.userAgent === 'Cloudflare-Workers';

/** `facts`: `code` and `detail`. */
export function warn(message, facts = {}) {
  const { process, console } = globalThis;
  if (typeof process?.emitWarning === 'function' && !isWorker) {
    process.emitWarning(message, { type: 'FareboxWarning', ...facts });
  } else {
    console.warn(`FareboxWarning: ${message}`, ...Object.values(facts));
  }
}

/** When the process was last warned, by code, tool and outcome: a mistake fails every call. */
const warnedAt = new Map();

/** The default of `onError`. */
export function warnOfCall(error, { tool }) {
  const { code, message, outcome } = error;
  if (!isDue(JSON.stringify([code, tool, outcome]))) return;
  const facts = ['outcome', 'requestId', 'idempotencyKey', 'holdId', 'chargeId'].flatMap((name) =>
    error[name] === undefined ? [] : [`${name} ${error[name]}`],
  );
  warn(`A call of "${tool}" ${fateOf(error)}: ${message}`, { code, detail: facts.join(', ') });
}

/** Whether the last such warning was long ago. */
function isDue(which) {
  const now = performance.now();
  if (now - (warnedAt.get(which) ?? -Infinity) < WARN_AGAIN_MS) return false;
  // The oldest warning comes first.
  warnedAt.delete(which);
  warnedAt.set(which, now);
  if (warnedAt.size > WARNED_MAX) warnedAt.delete(warnedAt.keys().next().value);
  return true;
}

function fateOf({ code, outcome }) {
  if (outcome === 'unknown') return 'may have been paid';
  if (outcome === 'not_refunded') return 'was paid, but its caller has no result';
  return code === 'service_unavailable' ? 'ran unpaid' : 'cannot be billed';
}
