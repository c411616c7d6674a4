/** Amounts that give an answer on demand, as in the service's test mode (docs/test-mode.md). */
import { refuse } from './fake-refusal.js';

const MESSAGES = {
  invalid_api_key: 'apiKey must be an active consumer key or spend key.',
  spend_limit_reached: 'The budget allows no more in total.',
  rate_limited: 'Too many requests; try again shortly.',
  service_unavailable: 'Nothing was charged; try again shortly.',
};
const CHARGES = new Map([
  [990_401, 'invalid_api_key'],
  [990_402, 'insufficient_balance'],
  [990_403, 'spend_limit_reached'],
  [990_429, 'rate_limited'],
  [990_503, 'service_unavailable'],
]);
const LOST_MICROS = 990_500;
const LATE_MICROS = 990_504;
const LATE_MS = 10_000;

const TOP_UPS = new Map([
  [402_010_000, ['card_declined', 'Your card was declined.']],
  [402_020_000, ['authentication_required', 'Your bank asks for confirmation.']],
  [402_030_000, ['card_expired', 'Your card has expired.']],
  [402_040_000, ['no_saved_card', 'No card is saved yet.']],
  [
    402_050_000,
    ['declined_too_often', 'The saved card was declined too often.', { retryAfter: 3_600 }],
  ],
  [403_010_000, ['consent_required', 'The owner has not consented to direct top-ups.']],
  [403_020_000, ['consent_ceiling_reached', 'The monthly limit of the owner is reached.']],
  [429_010_000, ['rate_limited', 'Too many top-ups are open.', { retryAfter: 60 }]],
  [503_010_000, ['service_unavailable', 'Top-ups are unavailable; nothing was started.']],
]);

/** `call`: facts of what is refused. `insufficient` refuses as for a balance of $0.00. */
export function refuseOnDemand(micros, call, insufficient) {
  const code = CHARGES.get(micros);
  if (code === undefined) return;
  if (code === 'insufficient_balance') insufficient();
  const limit = micros / 1_000_000;
  const budgetId = `bdg_${'0'.repeat(32)}`;
  const facts = { budgetId, scope: 'total', limit, remaining: 0, resetsAt: null, ...call };
  const param = code === 'invalid_api_key' ? 'apiKey' : undefined;
  refuse(code, MESSAGES[code], param, code === 'spend_limit_reached' ? facts : undefined);
}

export function refuseTopUpOnDemand(micros) {
  const [code, message, facts] = TOP_UPS.get(micros) ?? [];
  if (code) refuse(code, message, undefined, facts);
}

/** Loses the answer to what was made, or keeps it back; the answer to a repeat comes as usual. */
export async function answerOnDemand(micros, replayed, signal) {
  if (replayed) return;
  if (micros === LOST_MICROS)
    refuse('outcome_unknown', 'In test mode, this amount loses the response.');
  if (micros !== LATE_MICROS) return;
  await new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, LATE_MS);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
