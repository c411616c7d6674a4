/** The client against the real API: its promises must hold for the actual service. */
import assert from 'node:assert/strict';
import { Farebox, FareboxError, usd, type Charge } from '@farebox/client';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { read } from '../support/http.ts';
import { startApiProcess, until, type ServerProcess } from '../support/stack.ts';

interface Usage {
  readonly charges: { id: string; receipt: string; amount: number }[];
}

/** A busy machine does not take longer, so no request is repeated, whose answer would be a replay. */
const PATIENT_MS = 60_000;

describe('client: against the API', () => {
  let api: TestApi<ServerProcess>;
  /** At the same address, also after a restart. */
  let running: ServerProcess;
  let account: TestAccount;
  let farebox: Farebox;

  before(async () => {
    api = await startTestApiProcesses();
    running = api;
    account = await createAccount(api.env, 100);
    const { developerKey: secretKey } = account;
    farebox = new Farebox({ secretKey, baseUrl: api.url, timeoutMs: PATIENT_MS });
  });
  after(async () => {
    await running?.stop();
    await api?.stop();
  });

  const balance = async () => {
    const url = `${api.url}/v1/balance`;
    return (await read<{ balance: number }>(url, account.consumerKey)).balance;
  };

  const chargeWith = (secretKey: string, apiKey: string) =>
    new Farebox({ secretKey, baseUrl: api.url, timeoutMs: PATIENT_MS }).charge({
      apiKey,
      tool: 'x',
      amount: 1,
    });

  it('charges, and the receipt and the balance agree with the books', async () => {
    const { consumerId, consumerKey: apiKey, developerId } = account;
    const before = await balance();
    const charge = await farebox.charge({ apiKey, tool: 'search', amount: 0.5 });
    assert.partialDeepStrictEqual(charge, { paid: true, replayed: false, tool: 'search' });
    assert.partialDeepStrictEqual(charge, { amount: 0.5, consumerId, developerId });
    assert.equal(charge.balance, before - 0.5);
    assert.equal(await balance(), charge.balance);
    const usage = await read<Usage>(`${api.url}/v1/usage`, apiKey);
    assert.equal(usage.charges.find(({ id }) => id === charge.id)?.receipt, charge.receipt);
    assert.equal(new Date(charge.createdAt).toISOString(), charge.createdAt);
  });

  it('charges once for a key, and marks the second answer as a replay', async () => {
    const request = { apiKey: account.consumerKey, tool: 'search', amount: 1 };
    const first = await farebox.charge({ ...request, idempotencyKey: 'job 7' });
    const second = await farebox.charge({ ...request, idempotencyKey: 'job 7' });
    assert.deepEqual(second, { ...first, replayed: true });
    assert.equal(await balance(), first.balance);
    await assert.rejects(farebox.charge({ ...request, amount: 2, idempotencyKey: 'job 7' }), {
      code: 'idempotency_key_reused',
      status: 422,
    });
  });

  it('refunds a charge part by part, up to its amount', async () => {
    const before = await balance();
    const request = { apiKey: account.consumerKey, tool: 'search', amount: 1 };
    const { id: chargeId } = await farebox.charge(request);
    const part = { chargeId, amount: 0.25, idempotencyKey: 'first part' };
    const first = await farebox.refund(part);
    assert.partialDeepStrictEqual(first, { chargeId, amount: 0.25, refunded: 0.25 });
    assert.deepEqual(await farebox.refund(part), { ...first, replayed: true });
    await assert.rejects(farebox.refund({ chargeId, amount: 0.8 }), {
      code: 'refund_exceeds_charge',
      refundable: 0.75,
      outcome: 'not_refunded',
    });
    assert.partialDeepStrictEqual(await farebox.refund({ chargeId }), {
      amount: 0.75,
      refunded: 1,
    });
    assert.equal(await balance(), before);
  });

  it('refuses a charge larger than the balance, with the shortfall and the top-up link', async () => {
    const has = await balance();
    const request = { apiKey: account.consumerKey, tool: 'search', amount: 1_000 };
    await assert.rejects(farebox.charge(request), (error) => {
      assert.ok(FareboxError.isInstance(error));
      assert.equal(error.code, 'insufficient_balance');
      assert.equal(error.status, 402);
      assert.equal(error.balance, has);
      assert.equal(error.required, 1_000);
      assert.equal(error.shortfall, 1_000 - has);
      assert.ok(error.topUpUrl?.startsWith(api.url));
      assert.ok(error.requestId && error.docUrl);
      return true;
    });
    assert.equal(await balance(), has);
  });

  it('distinguishes a bad consumer key from a bad secret key', async () => {
    const { consumerKey, developerKey } = account;
    await assert.rejects(chargeWith(developerKey, `${consumerKey}x`), { code: 'invalid_api_key' });
    await assert.rejects(chargeWith(developerKey, developerKey), { code: 'invalid_api_key' });
    await assert.rejects(chargeWith(`${developerKey}x`, consumerKey), {
      code: 'invalid_secret_key',
    });
  });

  it('charges by its price map, down to the smallest amount', async () => {
    const prices = farebox.withPrices({ tiny: 0.000001, third: 0.333333 });
    const before = await balance();
    await prices.charge({ apiKey: account.consumerKey, tool: 'tiny' });
    const charge = await prices.charge({ apiKey: account.consumerKey, tool: 'third' });
    assert.equal(charge.amount, 0.333333);
    assert.equal(Math.round((before - charge.balance) * 1e6), 333_334);
  });

  it('charges by the unit exactly, where a float is refused with a reason', async () => {
    const request = { apiKey: account.consumerKey, tool: 'search' };
    await assert.rejects(farebox.charge({ ...request, amount: 3 * 0.07 }), {
      code: 'invalid_amount',
      message: /0\.21000000000000002/,
    });
    const exact = await farebox.charge({ ...request, amount: usd(0.07).times(3) });
    assert.equal(exact.amount, 0.21);
    const amount = usd('3').per(1_000_000).times(1_001).round('up');
    const charge = await farebox.charge({ ...request, amount });
    assert.equal(charge.amount, 0.003003);
    assert.equal((await farebox.refund({ chargeId: charge.id, amount })).amount, 0.003003);
  });

  it('charges the registered price when no amount is given', async () => {
    const response = await fetch(`${api.url}/v1/tools`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${account.developerKey}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ name: 'translate', description: 'Translates', price: 0.25 }),
    });
    assert.equal(response.status, 201);
    const charge = await farebox.charge({ apiKey: account.consumerKey, tool: 'translate' });
    assert.equal(charge.amount, 0.25);
  });

  it('takes the money of each call once while the API is killed and started again', async () => {
    const spender = await createAccount(api.env, 50);
    const { developerKey: secretKey, consumerKey: apiKey } = spender;
    const patient = new Farebox({
      secretKey,
      baseUrl: api.url,
      timeoutMs: 3_000,
      maxRetries: 1_000,
      coalesce: false,
    });
    const charges: Charge[] = [];
    const callers = Array.from({ length: 20 }, async () => {
      for (let calls = 0; calls < 50; calls += 1) {
        charges.push(await patient.charge({ apiKey, tool: 'search', amount: 0.01 }));
      }
    });
    const all = Promise.all(callers);
    for (const mark of [50, 400]) {
      await Promise.race([all, until(() => charges.length >= mark, { intervalMs: 1 })]);
      running.kill('SIGKILL');
      await running.exited;
      assert.ok(charges.length < 1_000, 'the kill came when all was done');
      running = await startApiProcess({ env: { ...api.env, PORT: new URL(api.url).port } });
    }
    await all;
    assert.equal(new Set(charges.map(({ id }) => id)).size, 1_000);
    const left = await read<{ balance: number }>(`${api.url}/v1/balance`, apiKey);
    assert.equal(left.balance, 40);
  });

  it('finds out by the same key what happened to a charge whose answer was lost', async () => {
    const { consumerKey: apiKey, developerKey: secretKey } = await createAccount(api.env, 10);
    const options = { secretKey, baseUrl: api.url };
    const hasty = new Farebox({ ...options, timeoutMs: 200, maxRetries: 1 });
    const request = { apiKey, tool: 'search', amount: 4 };
    running.kill('SIGSTOP');
    const error: unknown = await hasty.charge(request).catch((error: unknown) => error);
    running.kill('SIGCONT');
    assert.ok(FareboxError.isInstance(error));
    assert.equal(error.code, 'service_unavailable');
    assert.equal(error.outcome, 'unknown');
    const { idempotencyKey } = error;
    const charge = await new Farebox(options).charge({ ...request, idempotencyKey });
    assert.equal(charge.balance, 6);
  });
});
