/** Pays for responses that are written to Node's own response object: kept back until they are paid for. */
import { hasFailedStatus, keepBack, setAll } from './node-response.js';
import { isRefusal, limitTime, refundUnsent } from './paid.js';
import { chargeHeaders, refusalOf } from './refusals.js';

/**
 * Keeps the response back until payment is settled, which depends on its status; then adds the receipt as a header.
 * `answers(error)` may answer a call that takes too long in another way, and says whether it does.
 * `fail(error)` answers when the caller's own code could not settle. `handBack()` leaves the response to its
 * framework.
 */
export function settleBeforeEnd(
  farebox,
  payment,
  response,
  options,
  signal,
  { answers = () => false, fail },
) {
  const kept = keepBack(response, (body) => {
    stopTimer();
    void orFail(settle(farebox, payment, response, body, kept));
  });
  const giveUp = async (error) => {
    if (answers(error)) return;
    kept.silence();
    await payment.release();
    refuseKept(response, error, kept);
    kept.silence();
  };
  const stopTimer = limitTime(options, (error) => void orFail(giveUp(error)));
  // A rejection that nobody handles would end the server's process.
  const orFail = (ended) =>
    ended
      .catch((error) => {
        if (response.headersSent) kept.silence();
        else kept.forget();
        fail(error);
      })
      .catch(() => response.writableEnded || response.destroy());
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

async function settle(farebox, payment, response, body, kept) {
  let charge;
  try {
    charge = await payment[hasFailedStatus(response) ? 'release' : 'settle'](body);
  } catch (error) {
    if (isRefusal(error)) return refuseKept(response, error, kept);
    kept.restore();
    throw error;
  }
  kept.restore();
  try {
    setAll(response, Object.entries(chargeHeaders(charge)));
    response.end(body);
  } catch (error) {
    if (!response.writableEnded) await refundUnsent(farebox, charge);
    throw error;
  }
}

/** Refunds a charge of Koa if the response ends as an error or unsent: a stream or an outer middleware may fail later. */
export function refundIfUnsent(farebox, charge, response) {
  response.once('close', () => {
    const isSent = response.headersSent && response.statusCode < 400;
    if (!isSent) void refundUnsent(farebox, charge);
  });
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
