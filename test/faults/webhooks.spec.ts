/** Reports of a payment that are forged, old, malformed or repeated: only a true one counts, and once. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { Stripe } from 'stripe';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, call } from '../support/http.ts';
import { balanceOf, control, openCheckout, pay } from '../support/payments.ts';
import { startStack, until, type Stack } from '../support/stack.ts';

const nowSeconds = () => Math.floor(Date.now() / 1_000);

describe('POST /webhooks/stripe', () => {
  let stack: Stack;
  let sql: Client;
  let account: TestAccount;
  let payload: string;
  let secret: string;

  before(async () => {
    // The processor is silent and nobody asks it: what is credited here is what these tests report.
    stack = await startStack({ env: { FIRST_ASK_MS: '3600000' } });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    secret = stack.env['STRIPE_WEBHOOK_SECRET'] ?? '';
    account = (await createTestAccounts(stack.database.url, 1, 0))[0] as TestAccount;
    await control(stack.simulator, 'webhooks', { mode: 'drop' });
    const { topUpId, sessionUrl } = await openCheckout(stack.api, account, 25);
    assert.ok(await pay(sessionUrl));
    const session = { id: 'cs_1', object: 'checkout.session', metadata: { top_up_id: topUpId } };
    payload = JSON.stringify({
      id: 'evt_of_these_tests',
      object: 'event',
      type: 'checkout.session.completed',
      data: { object: session },
    });
  });
  after(async () => {
    await sql?.end();
    await stack?.stop();
  });

  const report = (signature: string | undefined, body = payload) =>
    call(stack.api, 'POST', '/webhooks/stripe', {
      rawBody: body,
      headers: signature === undefined ? {} : { 'stripe-signature': signature },
    });

  const signed = (body: string, { by = secret, at = nowSeconds() } = {}) =>
    new Stripe('sk_test_of_these_tests').webhooks.generateTestHeaderString({
      payload: body,
      secret: by,
      timestamp: at,
    });

  const storedEvents = async () =>
    (
      await sql.query<{ count: number }>(
        'select count(*)::int as count from farebox.processor_events',
      )
    ).rows[0]?.count;

  const refusals: Readonly<Record<string, () => ReturnType<typeof report>>> = {
    'signed with another secret': () => report(signed(payload, { by: 'whsec_of_somebody' })),
    'signed for another body': () => report(signed(payload.replace('cs_1', 'cs_2'))),
    'changed by a single space': () => report(signed(payload), `${payload} `),
    'older than five minutes': () => report(signed(payload, { at: nowSeconds() - 301 })),
    'without a signature': () => report(undefined),
    'with an empty signature': () => report(''),
    'with a signature of another form': () => report('v1=abc'),
    'with a time that is none': () => report(signed(payload).replace(/t=\d+/, 't=soon')),
    'with a scheme that is not v1': () => report(signed(payload).replace('v1=', 'v0=')),
    'that is not even JSON': () => report(signed('{').replace('v1=', 'v1=0'), '{'),
  };

  for (const [what, send] of Object.entries(refusals)) {
    it(`refuses a report ${what}, and keeps nothing of it`, async () => {
      assertError(await send(), 400, 'invalid_signature');
      assert.equal(await storedEvents(), 0);
      assert.equal(await balanceOf(stack.api, account), 0);
    });
  }

  it('takes ten identical reports at once, and credits once', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => report(signed(payload))));
    assert.deepEqual(
      answers.map(({ status }) => status),
      answers.map(() => 200),
    );
    await until(async () => (await balanceOf(stack.api, account)) === 25);
    assert.equal(await storedEvents(), 1);
    assert.equal((await report(signed(payload))).status, 200);
    assert.equal(await storedEvents(), 1);
    const { rows } = await sql.query('select amount_micros from farebox.movements');
    assert.deepEqual(rows, [{ amount_micros: '25000000' }]);
    await proveBooks(stack.env);
  });
});
