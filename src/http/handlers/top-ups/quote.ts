/** What a top-up would cost now, before it is requested. If tax is on, Stripe calculates it, and charges for that. */
import { LRUCache } from 'lru-cache';
import { HOUR_MS } from '../../../domain/durations.ts';
import { isTest } from '../../../domain/mode.ts';
import { asMicros, dollarsOf, type Micros } from '../../../domain/money.ts';
import { TOP_UP_MICROS_MIN } from '../../../domain/top-up.ts';
import type { TopUpQuoteQuery, TopUpQuoteReply } from '../../../schemas/top-ups.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import { findTaxedCustomer } from '../../../store/top-ups/processor-customers.ts';
import { calculateTax, type TaxSettings } from '../../../stripe/tax.ts';
import { amountOf } from '../../amounts.ts';
import { authenticateAgain } from '../../authenticate.ts';
import { isSignedIn } from '../../callers.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { payableFrom } from './top-ups.ts';

export async function getTopUpQuote(
  api: Api,
  { caller, query }: Request<undefined, TopUpQuoteQuery>,
): Promise<Reply<TopUpQuoteReply>> {
  const amountMicros = amountOf('amount', query.amount, payableFrom(api, TOP_UP_MICROS_MIN));
  const { tax } = api.config.stripe;
  const taxMicros =
    tax && !isTest(caller) ? await taxOn(api, caller, amountMicros, tax) : asMicros(0);
  return {
    status: 200,
    body: {
      amount: dollarsOf(amountMicros),
      tax: taxMicros === undefined ? null : dollarsOf(taxMicros),
      total: taxMicros === undefined ? null : dollarsOf(asMicros(amountMicros + taxMicros)),
    },
  };
}

/** A tax rate seldom changes within an hour; an address may, and is part of what is remembered. */
export function createQuotedTaxes(): LRUCache<string, Micros> {
  return new LRUCache({ max: 10_000, ttl: HOUR_MS });
}

/**
 * Undefined: not known, because the address is not, or because Stripe cannot be reached. The keys of an account
 * ask once at a time, and so do its sessions: while Stripe hangs, its other reads do not wait, and the owner does not
 * wait behind keys.
 */
function taxOn(
  api: Api,
  caller: KeyOwner,
  amount: Micros,
  tax: TaxSettings,
): Promise<Micros | undefined> {
  const { accountId } = caller;
  const callers = isSignedIn(caller) ? 'sessions' : 'keys';
  return api.shares.oneByOne.run(`quote-${callers}-${accountId}`, 1, async () => {
    await authenticateAgain(api.database, caller, 'consumer');
    const { customerId, paidAt } = await findTaxedCustomer(api.database, accountId);
    if (customerId === null) return undefined;
    const key = `${customerId} ${paidAt} ${amount}`;
    const known = api.quotedTaxes.get(key);
    if (known !== undefined) return known;
    await api.rateLimits.quotes.countFor(caller);
    try {
      const calculated = await calculateTax(api.stripe, customerId, amount, tax);
      if (calculated) api.quotedTaxes.set(key, calculated.micros);
      return calculated?.micros;
    } catch (error) {
      api.log.warn({ err: error }, 'could not calculate the tax of a top-up');
      return undefined;
    }
  });
}
