/** Top-ups: checkouts with and without tax, direct and automatic ones with their consents, and how each ends. */
import { Type } from 'typebox';
import { asMicros } from '../../../src/domain/money.ts';
import { row, sql } from '../../../src/store/database.ts';
import { deleteNotice, takeNotices } from '../../../src/store/outbox.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { setAutoTopUp, takeUpAutoTopUp } from '../../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent, readConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { recordPaymentIntent } from '../../../src/store/top-ups/plan-payment.ts';
import { credit, expire, fail } from '../../support/evidence.ts';
import type { Random } from '../../support/random.ts';
import type { Books, Owner } from './books.ts';

const CENT = 10_000;
const NOTICES_MOST = 100;

const unpaidRow = row(
  Type.Object({
    id: Type.String(),
    status: Type.String(),
    automatic: Type.Boolean(),
    amount: Type.Integer(),
  }),
);

export async function topUp(books: Books, owner: Owner, random: Random): Promise<void> {
  const taxMicros = random.chance(0.3) ? CENT : 0;
  await topUpWith(owner, random.between(1, 120) * CENT, taxMicros);
  books.count(`top up ${taxMicros > 0 ? 'with tax' : 'done'}`);
}

export async function topUpWith(owner: Owner, amountMicros: number, taxMicros = 0): Promise<void> {
  keep(owner, await owner.payer.topUp(amountMicros, taxMicros), amountMicros, taxMicros);
}

function keep(owner: Owner, id: string, amountMicros: number, taxMicros: number): void {
  owner.sums.toppedUp += amountMicros;
  owner.topUps.push({ id, grossMicros: amountMicros + taxMicros, requested: [], reversals: [] });
}

/** The consent, and automatic top-ups within it. */
export async function setAutomatic(books: Books, owner: Owner, random: Random): Promise<void> {
  const isWithdrawn = random.chance(0.15);
  const { takenMicros } = await readConsent(books.database, owner.view.consumerId);
  // Above what this month has taken, or everything would be refused from then on.
  const ceiling = asMicros(takenMicros + random.between(1, 70) * 10 * CENT);
  const ceilingMicros = isWithdrawn ? null : ceiling;
  const { consumerId } = owner.view;
  await changeConsent(books.database, consumerId, { ceilingMicros, givenBy: 'operator' });
  books.count(`consent ${isWithdrawn ? 'withdrawn' : 'given'}`);
  const amountMicros = asMicros(random.between(5, 60) * 2 * CENT);
  const settings = {
    thresholdMicros: asMicros(random.between(1_000_000, 10_000_000)),
    amountMicros,
    ceilingMicros: asMicros(Math.max(ceiling, amountMicros)),
  };
  const set = await setAutoTopUp(books.database, owner.view, random.chance(0.1) ? null : settings);
  books.count(`set automatic ${set}`);
}

/** Takes up the notices of automatic top-ups as a relay does, drops others, and makes them all due again. */
export async function takeUp(books: Books): Promise<void> {
  for (const notice of await takeNotices(books.database, NOTICES_MOST, 1)) {
    if (notice.topic === 'auto_top_up') {
      await takeUpAutoTopUp(books.database, notice);
      books.count('take up done');
    } else await deleteNotice(books.database, notice.id);
  }
  await books.change(sql.fragment`
    update farebox.outbox set next_attempt_at = now() where topic = 'auto_top_up'
  `);
  await books.change(sql.fragment`update farebox.auto_top_ups set not_before = now()`);
}

export async function direct(books: Books, owner: Owner, random: Random): Promise<void> {
  const { kind } = await admitTopUp(books.database, {
    ...owner.view,
    accountId: owner.accountId,
    method: 'direct',
    amountMicros: asMicros(random.between(5, 60) * 10 * CENT),
  });
  books.count(`direct ${kind}`);
}

/** Some pending ones end, and some that ended unpaid turn out to be paid. */
export async function end(books: Books, owner: Owner, random: Random): Promise<void> {
  const unpaid = await books.database.any(sql.type(unpaidRow)`
    select id, status, automatic, amount_micros as amount from farebox.top_ups
    where consumer_id = ${owner.view.consumerId} and method = 'direct' and status in ('pending', 'failed', 'expired')
  `);
  for (const { id, status, automatic, amount } of unpaid) {
    if (random.chance(status === 'pending' ? 0.4 : 0.6)) continue;
    const what = status === 'pending' ? (automatic ? 'automatic' : 'direct') : 'late';
    const verdict =
      status === 'pending' ? random.weighted({ paid: 5, failed: 3, expired: 2 }) : 'paid';
    if (verdict === 'failed') {
      await recordPaymentIntent(books.database, id, `pi_${id}`);
      const code = random.pick(['card_declined', 'consent_required']);
      await fail(books.database, id, { code, message: 'no' }, 1);
    } else if (verdict === 'expired') await expire(books.database, id);
    else if ((await credit(books.database, id)) === 'credited') keep(owner, id, amount, 0);
    books.count(`end ${what} ${verdict}`);
    if (verdict === 'paid' || !random.chance(0.5)) continue;
    // Another takes its place in the month, and then it is paid after all.
    await direct(books, owner, random);
    if ((await credit(books.database, id)) === 'credited') keep(owner, id, amount, 0);
    books.count('end late paid');
  }
}
