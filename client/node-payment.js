/** Pays for responses that are written to Node's own response object: kept back until they are paid for. */
import { keepBack, setAll } from './node-response.js';
import { isRefusal, limitTime } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';

/**
 * Keeps the response back until payment is settled, which depends on its status; then adds the receipt as a header.
 * `answers(error)` may answer a call that takes too long in another way, and says whether it does.
 * `fail(error)` answers when the caller's own code could not settle. `handBack()` leaves the response to its
 * framework.
 */
export function settleBeforeEnd(
  payment,
  response,
  options,
  signal,
  { answers = () => false, fail },
) {
  const kept = keepBack(response, (body) => {
    stopTimer();
    void settle(payment, response, body, kept, fail);
  });
  const stopTimer = limitTime(options, async (error) => {
    if (answers(error)) return;
    kept.silence();
    await payment.release();
    refuseKept(response, error, kept);
    kept.silence();
  });
  signal.addEventListener('abort', () => {
    stopTimer();
    void payment.release();
  });
  return {
    handBack() {
      stopTimer();
      kept.restore();
    },
  };
}

async function settle(payment, response, body, kept, fail) {
  try {
    const charge = await payment[response.statusCode < 400 ? 'settle' : 'release'](body);
    kept.restore();
    setAll(response, Object.entries(chargeHeaders(charge)));
    response.end(body);
  } catch (error) {
    if (isRefusal(error)) return refuseKept(response, error, kept);
    kept.restore();
    kept.forget();
    fail(error);
  }
}

/** The headers of the handler, such as `Content-Encoding`, are those of its own body. */
function refuseKept(response, error, kept) {
  kept.restore();
  kept.forget();
  refuse(response, error);
}

export function refuse(response, error) {
  const refusal = refusalOf(error);
  response.statusCode = refusal.status;
  setAll(response, Object.entries(refusal.headers));
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(JSON.stringify({ error: refusal.error }));
}
