/** Every call to Stripe in Farebox's sources, such as `paymentIntents.create`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const ROOMS = ['src', 'activities', 'workflows'];
const CALL = /\bstripe\s*\.\s*([a-zA-Z]+(?:\s*\.\s*[a-zA-Z]+)*)\s*\.\s*(\w+)\(/g;
/** Not calls over the network. */
const LOCAL = /^(webhooks|errors)\b/;
/**
 * Any other use of the client, such as a resource that is put into a variable, would hide calls. Not a name
 * in quotes.
 */
const HIDDEN =
  /(?<!config\.|')\bstripe\s*(\[|\.\s*(?!com\b|md\b|secretKey\b)).*|\}\s*=\s*(\w+\.)?stripe;/g;
/** `stripe[list].list(...)`: the lists that reconciliation walks. */
const WALKED = ['balanceTransactions.list', 'refunds.list', 'disputes.list'];

export function callsOfFarebox(): ReadonlySet<string> {
  const calls = new Set(WALKED);
  for (const text of sources()) {
    for (const [, resource = '', method] of text.matchAll(CALL)) {
      if (!LOCAL.test(resource)) calls.add(`${resource.replaceAll(/\s/g, '')}.${method}`);
    }
  }
  return calls;
}

/** Uses of the client in which a call might hide. */
export function hiddenUses(): readonly string[] {
  return sources()
    .flatMap((text) => text.replaceAll(CALL, '').match(HIDDEN) ?? [])
    .filter((use) => !/^stripe(\[list\]\.list\(|\.webhooks;)/.test(use));
}

function sources(): readonly string[] {
  return ROOMS.flatMap((room) =>
    readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(ROOT, room, file), 'utf8')),
  );
}
