/** What a charge would cost (`POST /v1/quote`). */
import type { NoCost, NoPrice } from '../../../charging/tool-prices.ts';
import { ApiError } from '../../../domain/errors.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type { QuoteBody, QuoteReply } from '../../../schemas/tools.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import type { Api } from '../../services.ts';
import { refusalError } from '../charges/charge-errors.ts';

/** By the rate card if the body has units, else by the price of the tool. Changes nothing. */
export async function postQuote(
  api: Api,
  { caller, body }: Request<QuoteBody>,
): Promise<Reply<QuoteReply>> {
  const { developerId } = caller;
  const { tool, units } = body;
  if (units === undefined) {
    const price = await api.tools.priceOf(developerId, tool, undefined);
    if (typeof price === 'string') throw refused(api, { kind: price });
    return { status: 200, body: { tool, amount: dollarsOf(price), cardVersion: null } };
  }
  const cost = await api.tools.costOf(developerId, tool, units);
  if (cost.kind !== 'cost') throw refused(api, cost);
  const amount = dollarsOf(cost.amountMicros);
  return { status: 200, body: { tool, amount, cardVersion: cost.cardVersion } };
}

/** Refused as the charge would be, but without the advice to send an amount. */
function refused(api: Api, refusal: NoCost | { readonly kind: NoPrice }): ApiError {
  switch (refusal.kind) {
    case 'amount_required':
      return invalidField('units', 'The tool has no price. Send units if it has a rate card.');
    case 'unknown_tool':
      return new ApiError('unknown_tool', 'The tool is not registered (POST /v1/tools).', {
        param: 'tool',
      });
    case 'tool_archived':
      return new ApiError(
        'tool_archived',
        'The tool is archived: unarchive it (PATCH /v1/tools/:id).',
        {
          param: 'tool',
        },
      );
    case 'card_required':
    case 'unknown_unit':
    case 'cost_too_high':
    case 'no_cost':
      return refusalError(api, refusal);
  }
}
