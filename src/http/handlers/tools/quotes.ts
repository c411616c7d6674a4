/** What a charge would cost (`POST /v1/quote`). */
import { dollarsOf } from '../../../domain/money.ts';
import type { QuoteBody, QuoteReply } from '../../../schemas/tools.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import type { Api } from '../../services.ts';
import { refusalError } from '../charges/charge-errors.ts';

/** By the rate card if the body has units, else by the price of the tool. Refused as the charge would be. Changes nothing. */
export async function postQuote(
  api: Api,
  { caller, body }: Request<QuoteBody>,
): Promise<Reply<QuoteReply>> {
  const { developerId } = caller;
  const { tool, units } = body;
  if (units === undefined) {
    const price = await api.tools.priceOf(developerId, tool, undefined);
    if (price === 'amount_required') {
      throw invalidField('units', 'The tool has no price. Send units if it has a rate card.');
    }
    if (typeof price === 'string') throw refusalError(api, { kind: price });
    return { status: 200, body: { tool, amount: dollarsOf(price), cardVersion: null } };
  }
  const cost = await api.tools.costOf(developerId, tool, units);
  if (cost.kind !== 'cost') throw refusalError(api, cost);
  const amount = dollarsOf(cost.amountMicros);
  return { status: 200, body: { tool, amount, cardVersion: cost.cardVersion } };
}
