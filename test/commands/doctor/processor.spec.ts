/** Doctor reports differences between Stripe and the ledger, top-up by top-up. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { readStripeConfig } from '../../../src/config.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { createStripe } from '../../../src/stripe/calls.ts';
import { startSimulator, type Simulator } from '../../support/simulators.ts';
import { openPlantedBooks, type PlantedBooks } from './planted-books.ts';

describe('farebox doctor --only processor', () => {
  let simulator: Simulator;
  let stripe: Stripe;
  let customer: string;
  let books: PlantedBooks;

  before(async () => {
    simulator = await startSimulator();
    stripe = createStripe(readStripeConfig(simulator.env));
    customer = (await stripe.customers.create()).id;
    books = await openPlantedBooks(10, simulator.env);
  });
  after(async () => {
    await books?.close();
    await simulator?.stop();
  });

  /** Pays at Stripe, and returns the payment's id. */
  async function pay(topUp: string, cents = 2_000): Promise<string> {
    const { id } = await stripe.paymentIntents.create({
      amount: cents,
      currency: 'usd',
      customer,
      payment_method: 'pm_card_visa',
      confirm: true,
      off_session: true,
      metadata: { top_up_id: wireId('topUp', topUp) },
    });
    return id;
  }

  const record = (topUp: string, intent: string) =>
    books.sql.query('update farebox.top_ups set payment_intent_id = $2 where id = $1', [
      topUp,
      intent,
    ]);

  /** The finding about each top-up. */
  async function findings(...options: readonly string[]): Promise<Map<string, string[]>> {
    const found = (await books.examine('--only', 'processor', ...options)).findings;
    return new Map(
      [...Map.groupBy(found, ({ subject }) => subject)].map(([subject, its]) => [
        subject.replace('top-up ', ''),
        its.map(({ detail }) => detail).toSorted(),
      ]),
    );
  }

  it('names each top-up that differs, with both amounts and the payments, and nothing else', async () => {
    const all = books.accounts;
    const [whole, unpaid, twice, less, uncredited, one, other, refunded, disputed, kept] = all.map(
      ({ checkout }) => checkout,
    ) as [string, string, string, string, string, string, string, string, string, string];
    const paid = new Map<string, string>();
    for (const topUp of [whole, twice, uncredited, one, other, refunded, disputed, kept]) {
      paid.set(topUp, await pay(topUp));
      await record(topUp, paid.get(topUp)!);
    }
    const second = await pay(twice);
    const tooLittle = await pay(less, 1_999);
    const unknown = all[0]!.account;
    const stray = await pay(unknown, 500);
    await record(less, tooLittle);
    // Two top-ups exchange their payments: a refund of either would pay the wrong person.
    await record(one, 'pi_elsewhere');
    await record(other, paid.get(one)!);
    await record(one, paid.get(other)!);
    await books.sql.query('delete from farebox.movements where top_up_id = $1', [uncredited]);
    const { id: refund } = await stripe.refunds.create({
      payment_intent: paid.get(refunded)!,
      amount: 400,
    });
    await books.sql.query(
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros,
          taken_micros, processor_id)
        select uuidv7(), ledger, consumer_id, id, 'dispute', 'lost', 1000000, 0, 'dp_gone'
        from farebox.top_ups where id = $1`,
      [disputed],
    );
    const { id: known } = await stripe.refunds.create({
      payment_intent: paid.get(kept)!,
      amount: 300,
    });
    await books.sql.query(
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros,
          taken_micros, processor_id)
        select uuidv7(), ledger, consumer_id, id, 'refund', 'made', 3000000, 3000000, $2
        from farebox.top_ups where id = $1`,
      [kept, known],
    );

    const mismatch = 'Stripe has a payment of another amount, currency or top-up';
    const reversals = 'refunds or disputes are not the same at Stripe and in the ledger';
    assert.deepEqual(
      await findings(),
      new Map([
        [unpaid, ['credited but not paid at Stripe: Stripe 0, ledger 20000000 (no payment)']],
        [
          twice,
          [
            'Stripe has more than one payment: Stripe 40000000, ledger 20000000 ' +
              `(${paid.get(twice)} (credited), ${second})`,
          ],
        ],
        [
          less,
          [
            `${mismatch}: Stripe 19990000, ledger 0 (${tooLittle} (credited))`,
            `credited but not paid at Stripe: Stripe 0, ledger 20000000 (${tooLittle} (credited))`,
          ],
        ],
        [
          uncredited,
          [`paid at Stripe but not credited: Stripe 20000000, ledger 0 (${paid.get(uncredited)})`],
        ],
        [
          one,
          [
            `${mismatch}: Stripe 20000000, ledger 0 (${paid.get(other)} (credited), ${paid.get(one)})`,
          ],
        ],
        [
          other,
          [
            `${mismatch}: Stripe 20000000, ledger 0 (${paid.get(one)} (credited), ${paid.get(other)})`,
          ],
        ],
        [
          refunded,
          [
            `${reversals}: Stripe 4000000, ledger 0 ` +
              `(only at Stripe: ${refund} made 4000000; only in the ledger: nothing)`,
          ],
        ],
        [
          disputed,
          [
            `${reversals}: Stripe 0, ledger 1000000 ` +
              '(only at Stripe: nothing; only in the ledger: dp_gone lost 1000000)',
          ],
        ],
        [
          unknown,
          [
            'Stripe has a payment for a top-up that the ledger does not know: ' +
              `Stripe 5000000, ledger 0 (${stray})`,
          ],
        ],
      ]),
    );
  });

  it('compares only the top-ups that were requested since a time, if one is given', async () => {
    const since = new Date().toISOString();
    const { rows } = await books.sql.query<{ id: string }>(
      `insert into farebox.top_ups select (jsonb_populate_record(t, jsonb_build_object(
          'id', uuidv7(), 'status', 'pending', 'completed_at', null, 'session_id', null,
          'payment_intent_id', null, 'seen_verdict', null, 'seen_at', null, 'seen_micros', null
        ))).* from farebox.top_ups t where id = $1 returning id`,
      [books.accounts[0]?.checkout],
    );
    const newer = rows[0]?.id ?? '';
    const intent = await pay(newer);
    const expected = `paid at Stripe but not credited: Stripe 20000000, ledger 0 (${intent})`;
    assert.deepEqual(await findings('--since', since), new Map([[newer, [expected]]]));
    assert.ok((await findings()).size > 1);
    assert.deepEqual(await findings('--since', '2999-01-01'), new Map());
  });
});
