/** The message of a refusal is true of the request that it refuses, and says what to do. */
import assert from 'node:assert/strict';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { ask, tryAsk, tryDecide } from '../support/approval-requests.ts';
import { closeBudget, makeBudget, makeKey } from '../support/budget-requests.ts';
import { askCapture, askExtension, capture, place, release } from '../support/hold-requests.ts';
import { call, type Answer } from '../support/http.ts';

describe('the message of a refusal', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
  });
  after(() => api?.stop());

  it('names the state of a hold that can no longer be captured or extended', async () => {
    const [captured, released] = [await place(api, account), await place(api, account)];
    await capture(api, account, captured.id);
    await release(api, account, released.id);
    assert.equal(
      messageOf(await askCapture(api, account, captured.id)),
      'The hold is closed: its status is captured. Place a new hold.',
    );
    assert.equal(
      messageOf(await askExtension(api, account, released.id, 60)),
      'The hold is closed: its status is released. Place a new hold.',
    );
  });

  it('does not suggest an overflow to a capture that asked for one', async () => {
    const { id } = await makeBudget(api, account.consumerKey, { limit: 5 });
    const { key } = await makeKey(api, account.consumerKey, id);
    const hold = await place(api, { ...account, consumerKey: key }, { amount: 0.5 });
    await closeBudget(api, account.consumerKey, id);
    const more = { amount: 0.6, over: 'overflow' };
    assert.equal(
      messageOf(await askCapture(api, account, hold.id, more)),
      'Only $0.50 of the hold is left, and its key cannot be charged more. Pass over: "cap" to charge just that.',
    );
  });

  it('names the limit that a raise must exceed', async () => {
    const { id } = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key } = await makeKey(api, account.consumerKey, id);
    const asked = await ask(api, account, key, 2);
    const raise = { decision: 'raise', limit: 0.5 };
    assert.equal(
      messageOf(await tryDecide(api, account.consumerKey, asked.id, raise)),
      'limit must be more than $1.00, the current limit.',
    );
  });

  it('says that nothing refuses a call, even if nothing ever did', async () => {
    const { id } = await makeBudget(api, account.consumerKey, { limit: 1 });
    const { key } = await makeKey(api, account.consumerKey, id);
    assert.equal(
      messageOf(await tryAsk(api, account, key, 0.5)),
      'Nothing refuses this call, so it needs no approval. Charge again.',
    );
  });

  it('does not speak of an ended session to a request that never had one', async () => {
    for (const options of [{ key: account.consumerKey }, {}]) {
      assert.equal(
        messageOf(await call(api, 'GET', '/v1/account-keys', options)),
        'This request needs a session of the console, and takes no key. Sign in to the console.',
      );
    }
  });

  it('says that an idempotency key cannot begin or end with a space', async () => {
    const charges = [{ apiKey: account.consumerKey, tool: 'a', amount: 1, idempotencyKey: ' a' }];
    const answer = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body: { charges },
    });
    const [first] = (answer.body as { results: { error: { message: string } }[] }).results;
    assert.equal(
      first?.error.message,
      'An idempotency key is 1 to 255 printable ASCII characters, without spaces at either end. Send it once.',
    );
  });

  it('asks for the secret key by the name that the guides use', async () => {
    const body = { apiKey: account.consumerKey, tool: 'search', amount: 1 };
    assert.equal(
      messageOf(await call(api, 'POST', '/v1/charges', { body })),
      'This request needs an active secret key. Send Authorization: Bearer <secret key>.',
    );
  });

  it('says that a spend key can be charged too', async () => {
    const body = { apiKey: 'fare_ck_live_unknown', tool: 'search', amount: 1 };
    assert.equal(
      messageOf(await call(api, 'POST', '/v1/charges', { key: account.developerKey, body })),
      'apiKey must be an active consumer key or spend key.',
    );
  });
});

function messageOf({ body }: Answer): string {
  return (body as { error: { message: string } }).error.message;
}
