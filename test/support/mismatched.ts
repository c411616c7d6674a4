/** Payments that do not match their top-ups. */
import { sql } from '../../src/store/database.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { idOf } from '../../src/stripe/verdict.ts';
import { until } from './stack.ts';
import type { Consumer, TopUpHarness } from './top-up-harness.ts';

/** $25.00 are paid for a top-up of $26.00. */
export async function payMismatched(
  harness: TopUpHarness,
  consumer: Consumer,
): Promise<{ readonly topUp: TopUp; readonly intent: string }> {
  const topUp = await harness.checkout(consumer, 25);
  await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set amount_micros = 26000000 where id = ${topUp.id}
    `);
  await harness.pay(topUp.sessionUrl);
  await until(() => harness.stuck(topUp));
  const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
  return { topUp, intent: idOf(session.payment_intent) ?? '' };
}
