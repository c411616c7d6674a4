/**
 * The saved card and its limits, for the signed-in owner. No key can change them, so a thief with a consumer key cannot
 * raise the limit. A change and the reply that shows it are one transaction: if the reply cannot be read, nothing has
 * changed.
 */
import { CONSENT_TERMS } from '../../../domain/consent-terms.ts';
import { ApiError } from '../../../domain/errors.ts';
import { dollarsOf, type Micros } from '../../../domain/money.ts';
import { TOP_UP_MICROS_MAX, TOP_UP_MICROS_MIN } from '../../../domain/top-up.ts';
import type { AutoTopUpBody, ConsentBody, ConsentReply } from '../../../schemas/consent.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import type { Connection } from '../../../store/database.ts';
import {
  findAutoTopUp,
  setAutoTopUp,
  type AutoTopUpSettings,
} from '../../../store/top-ups/auto-top-ups.ts';
import { changeConsent, readConsent } from '../../../store/top-ups/monthly-ceiling.ts';
import { amountOf, invalidAmount, type AmountRule } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import type { Api } from '../../services.ts';
import { payableFrom } from './top-ups.ts';

export async function getConsent(
  { database }: { readonly database: Connection },
  { caller }: Pick<Request, 'caller'>,
): Promise<Reply<ConsentReply>> {
  const { ceilingMicros, takenMicros, agreedAt } = await readConsent(database, caller.consumerId);
  const autoTopUp = await findAutoTopUp(database, caller);
  return {
    status: 200,
    body: {
      ceiling: ceilingMicros === null ? null : dollarsOf(ceilingMicros),
      taken: dollarsOf(takenMicros),
      agreedAt,
      terms: { ...CONSENT_TERMS },
      autoTopUp: autoTopUp && {
        status: autoTopUp.status,
        reason: autoTopUp.reason,
        threshold: dollarsOf(autoTopUp.thresholdMicros),
        amount: dollarsOf(autoTopUp.amountMicros),
        ceiling: dollarsOf(autoTopUp.ceilingMicros),
      },
    },
  };
}

/** Records the terms that were shown. They may have changed since: then the page shows the new ones first. */
export async function postConsent(
  api: Api,
  { caller, body }: Request<ConsentBody>,
): Promise<Reply<ConsentReply>> {
  if (body.termsVersion !== CONSENT_TERMS.version) {
    throw invalidField('termsVersion', 'The terms have changed. Read and accept the new terms.');
  }
  const ceilingMicros = amountOf('ceiling', body.ceiling, CEILING);
  return api.database.transaction(async (database) => {
    await changeConsent(database, caller.consumerId, {
      ceilingMicros,
      givenBy: 'owner',
      terms: CONSENT_TERMS,
    });
    return getConsent({ database }, { caller });
  });
}

/** A payment that has started continues; no other one starts. */
export async function postConsentWithdrawal(
  api: Api,
  { caller }: Request,
): Promise<Reply<ConsentReply>> {
  return api.database.transaction(async (database) => {
    await changeConsent(database, caller.consumerId, { ceilingMicros: null, givenBy: 'owner' });
    return getConsent({ database }, { caller });
  });
}

export async function postAutoTopUp(
  api: Api,
  { caller, body }: Request<AutoTopUpBody>,
): Promise<Reply<ConsentReply>> {
  const thresholdMicros = amountOf('threshold', body.threshold, THRESHOLD);
  const amountMicros = amountOf('amount', body.amount, payableFrom(api, TOP_UP_MICROS_MIN));
  const ceilingMicros = amountOf('ceiling', body.ceiling, CEILING);
  if (amountMicros > ceilingMicros) {
    throw invalidAmount('ceiling', body.ceiling, 'at least the amount of one top-up');
  }
  return changeAutoTopUp(api, caller, { thresholdMicros, amountMicros, ceilingMicros });
}

export async function postAutoTopUpOff(
  api: Api,
  { caller }: Request,
): Promise<Reply<ConsentReply>> {
  return changeAutoTopUp(api, caller, null);
}

function changeAutoTopUp(
  api: Api,
  caller: KeyOwner,
  settings: AutoTopUpSettings | null,
): Promise<Reply<ConsentReply>> {
  return api.database.transaction(async (database) => {
    if ((await setAutoTopUp(database, caller, settings)) === 'consent_required') {
      throw new ApiError(
        'consent_required',
        'Allow payments from your saved card first: automatic top-ups need them.',
      );
    }
    return getConsent({ database }, { caller });
  });
}

const upTo = (max: Micros): AmountRule => ({
  accepts: (amount) => amount > 0 && amount <= max,
  says: `more than 0 and at most ${dollarsOf(max)} dollars`,
});
const THRESHOLD = upTo(TOP_UP_MICROS_MAX);
const CEILING = upTo(TOP_UP_MICROS_MAX);
