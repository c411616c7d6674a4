/** Every call to Stripe in Farebox's sources, such as `paymentIntents.create`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const ROOMS = ['src', 'activities', 'workflows'];
const CALL = /\bstripe\s*\.\s*([a-zA-Z]+(?:\s*\.\s*[a-zA-Z]+)*)\s*\.\s*(\w+)\(/g;
/** Not calls over the network. */
const LOCAL = /^(webhooks|errors)\b/;
/** `stripe[list].list(...)`: the lists that reconciliation walks. */
const WALKED = ['balanceTransactions.list', 'refunds.list', 'disputes.list'];

export function callsOfFarebox(): ReadonlySet<string> {
  const calls = new Set(WALKED);
  for (const room of ROOMS) {
    for (const file of readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts')) continue;
      for (const [, resource = '', method] of readFileSync(join(ROOT, room, file), 'utf8').matchAll(
        CALL,
      )) {
        if (!LOCAL.test(resource)) calls.add(`${resource.replaceAll(/\s/g, '')}.${method}`);
      }
    }
  }
  return calls;
}
