/** The consumer's side of the client, against the real API and the payment simulator. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer } from '@farebox/client';
import { pay } from '../support/payments.ts';
import { startStack, until, type Stack } from '../support/stack.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { raised } from './scripted-service.ts';

describe('client: the consumer’s side', () => {
  let stack: Stack;
  let account: TestAccount;
  let consumer: FareboxConsumer;

  before(async () => {
    stack = await startStack();
  });
  beforeEach(async () => {
    account = await createAccount(stack.env, 10);
    const { consumerKey } = account;
    consumer = new FareboxConsumer({ consumerKey, baseUrl: stack.api.url });
  });
  after(() => stack?.stop());

  it('reads the balance and the charges to it', async () => {
    const farebox = new Farebox({ secretKey: account.developerKey, baseUrl: stack.api.url });
    const request = { apiKey: account.consumerKey, tool: 'search', amount: 2 };
    const made = [await farebox.charge(request), await farebox.charge(request)];
    assert.partialDeepStrictEqual(await consumer.balance(), {
      balance: 6,
      consumerId: account.consumerId,
    });
    const ids: string[] = [];
    for await (const { id } of consumer.charges.list({ limit: 1 })) ids.push(id);
    assert.deepEqual(ids, made.map(({ id }) => id).toReversed());
    assert.equal((await consumer.charges.list({ tool: 'search' }).page()).total, 4);
    const month = new Date().toISOString().slice(0, 7);
    assert.equal((await consumer.statement(month)).closingBalance, 6);
    assert.match(consumer.lastRequestId ?? '', /^req_/);
  });

  it('tops up by checkout, then from the card that it saved, each once', async () => {
    const asked = { amount: '5.00', idempotencyKey: 'first' };
    const { sessionUrl, topUpId } = await consumer.checkout(asked);
    assert.equal((await consumer.checkout(asked)).topUpId, topUpId);
    await pay(sessionUrl ?? '');
    await until(async () => (await consumer.topUps.get(topUpId)).status === 'completed');
    const direct = await consumer.topUp({ amount: 6 });
    assert.equal(direct.status, 'completed');
    assert.equal((await consumer.balance()).balance, 21);
    const topUps: string[] = [];
    for await (const { method } of consumer.topUps.list({ limit: 1 })) topUps.push(method);
    assert.deepEqual(topUps, ['direct', 'checkout', 'manual']);
  });

  it('raises the service’s refusals', async () => {
    const small = await raised(consumer.checkout({ amount: 1 }));
    assert.deepEqual(
      [small.code, small.param, small.outcome],
      ['invalid_amount', 'amount', 'not_done'],
    );
    assert.equal((await raised(consumer.topUps.get('tu_0'))).code, 'not_found');
    const none = new FareboxConsumer({ consumerKey: 'fare_ck_live_x', baseUrl: stack.api.url });
    assert.equal((await raised(none.balance())).code, 'invalid_api_key');
  });
});
