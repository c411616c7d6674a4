/** The errors of refused charges, holds and leases. Those of budgets are in budget-errors.ts. */
import type { ChargeRefusal, OnDemand } from '../../../charging/draft-charge.ts';
import type { DecidedCharge } from '../../../charging/earlier-charges.ts';
import { ApiError } from '../../../domain/errors.ts';
import { NIL_UUID, wireId } from '../../../domain/ids.ts';
import { asMicros, dollarsOf, formatDollars, type Micros } from '../../../domain/money.ts';
import { CHARGEABLE, invalidAmount } from '../../amounts.ts';
import { invalidField } from '../../invalid-field.ts';
import { invalidApiKey } from '../../invalid-api-key.ts';
import type { Api } from '../../services.ts';
import { budgetError } from '../budgets/budget-errors.ts';

/** The error of a charge, hold or lease that was refused. */
export function refusalError(
  { config }: Pick<Api, 'config'>,
  refusal: Exclude<ChargeRefusal, OnDemand>,
): ApiError {
  switch (refusal.kind) {
    case 'invalid_api_key':
      return invalidApiKey();
    case 'account_keys_closed':
      return new ApiError(
        'account_keys_closed',
        'The consumer accepts charges only to spend keys. Ask for a spend key.',
        { param: 'apiKey' },
      );
    case 'mode_mismatch':
      return new ApiError(
        'mode_mismatch',
        'apiKey and your secret key have different modes: one is a test key, the other a live key.',
        { param: 'apiKey' },
      );
    case 'invalid_amount':
      return invalidAmount('amount', refusal.sent, CHARGEABLE.says);
    case 'amount_required':
      return new ApiError(
        'invalid_amount',
        'The tool has no price: send an amount, or units if it has a rate card.',
        {
          param: 'amount',
        },
      );
    case 'amount_and_units':
      return invalidField('units', 'Send either amount or units.');
    case 'card_required':
      return invalidField(
        'units',
        'The tool has no rate card: set one (PATCH /v1/tools/:id) or send an amount.',
      );
    case 'unknown_unit':
      return invalidField(
        `units.${refusal.unit}`,
        `The rate card of the tool has no unit ${refusal.unit}. It has ${refusal.priced.join(', ')}.`,
      );
    case 'cost_too_high':
      return new ApiError('invalid_amount', 'The units cost more than $1,000,000.', {
        param: 'units',
      });
    case 'no_cost':
      return new ApiError(
        'invalid_amount',
        'The units cost nothing. A free call needs no charge.',
        {
          param: 'units',
          facts: { required: dollarsOf(asMicros(0)) },
        },
      );
    case 'unknown_tool':
      return new ApiError(
        'unknown_tool',
        'The tool is not registered: register it (POST /v1/tools) or send an amount. ' +
          'Charges can use at most 1,000 unregistered names.',
        { param: 'tool' },
      );
    case 'tool_archived':
      return new ApiError(
        'tool_archived',
        'The tool is archived, so its price no longer applies: send an amount, or unarchive it ' +
          '(PATCH /v1/tools/:id).',
        { param: 'tool' },
      );
    case 'limit_reached':
    case 'tool_not_allowed':
    case 'developer_not_allowed':
    case 'lease_not_allowed':
    case 'approval_required':
      return budgetError(refusal, config.consoleUrl);
  }
}

/** What the amount of a test charge asks for: the error that the real cause would give. */
export function errorOnDemand(
  api: Pick<Api, 'topUpLinks' | 'config'>,
  onDemand: OnDemand,
): ApiError {
  const { code, amountMicros } = onDemand;
  switch (code) {
    case 'invalid_api_key':
      return refusalError(api, { kind: code });
    case 'insufficient_balance':
      return insufficientBalance(api, onDemand, asMicros(0));
    case 'spend_limit_reached':
      return refusalError(api, {
        kind: 'limit_reached',
        // The key may have no budget.
        budgetId: NIL_UUID,
        scope: 'total',
        limitMicros: amountMicros,
        remainingMicros: asMicros(0),
        resetsAt: null,
        call: onDemand,
      });
    case 'rate_limited':
      return new ApiError(code, 'Too many requests; try again shortly.', { retryAfterSeconds: 1 });
    case 'service_unavailable':
      return new ApiError(code, 'Nothing was charged; try again shortly.', {
        retryAfterSeconds: 1,
        isOnDemand: true,
      });
  }
}

/** A 402 with a link to pay the shortfall. For a charge or hold, it also has the facts that ask for an approval. */
export function insufficientBalance(
  api: Pick<Api, 'topUpLinks'>,
  { consumerId, developerId, tool, amountMicros: required }: DecidedDraft,
  balance: Micros,
): ApiError {
  const shortfall = asMicros(required - balance);
  return new ApiError(
    'insufficient_balance',
    `The balance of ${formatDollars(balance)} does not cover ${formatDollars(required)}; ` +
      'the consumer has to top up.',
    {
      facts: {
        balance: dollarsOf(balance),
        required: dollarsOf(required),
        shortfall: dollarsOf(shortfall),
        topUpUrl: api.topUpLinks.urlFor(consumerId, developerId, shortfall),
        ...(tool !== undefined && { developerId: wireId('developer', developerId), tool }),
      },
    },
  );
}

type DecidedDraft = Pick<DecidedCharge['draft'], 'consumerId' | 'developerId' | 'amountMicros'> & {
  readonly tool?: string;
};
