/** `farebox webhook`, as operators type it, beside the API that shows the same endpoints. */
import assert from 'node:assert/strict';
import type { Static } from 'typebox';
import { WebhookEndpointsReply } from '../../src/schemas/webhook-endpoints.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { bodyOf, call } from '../support/http.ts';
import { startReceiver, verify, type Receiver } from '../support/receiver.ts';
import { farebox, startStack, until, type Stack } from '../support/stack.ts';

type Printed = Readonly<Record<string, string | number | null>>;

const NOWHERE = `we_${'0'.repeat(32)}`;

describe('farebox webhook', () => {
  let stack: Stack;
  let account: TestAccount;
  let receiver: Receiver;

  before(async () => {
    stack = await startStack({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true', WEBHOOK_RETRY_MS: '100' } });
    receiver = await startReceiver();
    account = await createTestAccount(stack.database.url, 0);
  });
  after(async () => {
    await receiver?.stop();
    await stack?.stop();
  });

  const run = (...args: readonly string[]) => farebox(['webhook', ...args], { env: stack.env });
  async function json(...args: readonly string[]): Promise<Printed[]> {
    const lines = (await run(...args, '--json')).trim().split('\n');
    return lines.filter(Boolean).map((line) => JSON.parse(line) as Printed);
  }
  const one = async (...args: readonly string[]) => (await json(...args))[0] ?? assert.fail();

  const add = (...more: readonly string[]) => ['add', account.email, ...more];

  async function assertRefused(code: number, said: RegExp, args: readonly string[], env = {}) {
    await assert.rejects(
      farebox(['webhook', ...args], { env: { ...stack.env, ...env } }),
      (error: Error & { code?: number; stderr?: string }) => {
        assert.match(error.stderr ?? '', said);
        assert.equal(error.code, code, error.stderr);
        return true;
      },
    );
  }

  async function ofApi(): Promise<Static<typeof WebhookEndpointsReply>['webhookEndpoints']> {
    const answer = await call(stack.api, 'GET', '/v1/webhook-endpoints', {
      key: account.developerKey,
    });
    return bodyOf(answer, 200, WebhookEndpointsReply).webhookEndpoints;
  }

  it('adds, tests, rolls, redelivers, changes and removes an endpoint', async () => {
    const types = 'key.created, top_up.completed';
    const made = await one('add', account.email, receiver.url, '--types', types);
    const id = String(made['id']);
    const [shown] = await ofApi();
    assert.deepEqual(
      [shown?.id, shown?.url, shown?.types?.join(', '), shown?.description],
      [id, receiver.url, types, ''],
    );

    const sent = await one('test', id);
    assert.deepEqual([sent['type'], sent['status']], ['webhook_endpoint.test', 'waiting']);
    const event = await until(() => receiver.events[0]);
    assert.equal(event.id, sent['eventId']);
    verify(String(made['secret']), event);
    await until(async () => (await json('deliveries', id, '--status', 'delivered')).length === 1);

    const rolled = await one('roll-secret', id, '--overlap', '1h');
    assert.ok(Date.parse(String(rolled['previousSecretExpiresAt'])) > Date.now());
    await one('redeliver', id, event.id);
    const again = await until(() => receiver.events[1]);
    assert.equal(again.raw, event.raw);
    for (const each of [made, rolled]) verify(String(each['secret']), again);
    const log = await until(async () => {
      const [head, row] = (await run('deliveries', id)).trim().split('\n');
      return / 2 /.test(row ?? '') && [head, row];
    });
    assert.match(log[0] ?? '', /^eventId +type +status +attempts +attemptedAt +responseStatus/);
    assert.match(log[1] ?? '', new RegExp(`^${event.id} +webhook_endpoint.test +delivered +2 `));

    const changed = await one('set', id, '--types', 'none', '--description', 'shop', '--disable');
    assert.deepEqual(
      [changed['types'], changed['description'], changed['disabledReason']],
      [null, 'shop', 'owner'],
    );
    await assertRefused(1, /is disabled\. Run `farebox webhook set we_\w+ --enable`/, ['test', id]);
    assert.equal((await one('set', id, '--enable'))['status'], 'active');
    assert.match(await run('list', account.consumerId), new RegExp(`\n${id} +http:.* active `));

    await one('remove', id);
    assert.deepEqual(await ofApi(), []);
    await assertRefused(1, /Endpoint we_\w+ not found/, ['deliveries', id]);
  });

  it('keeps the endpoints of test mode apart', async () => {
    assert.deepEqual(await json('list', account.email, '--test'), []);
    const made = await one('add', account.email, receiver.url, '--test');
    assert.deepEqual(await json('list', account.email), []);
    assert.deepEqual(
      (await json('list', account.email, '--test')).map(({ id }) => id),
      [made['id']],
    );
  });

  it('refuses what the API refuses, with 1, and wrong usage with 2', async () => {
    await assertRefused(1, /The URL must be an https URL/, add('http://example.com'));
    const withoutPrivate = { ALLOW_PRIVATE_ENDPOINTS: 'false' };
    await assertRefused(1, /^farebox: The URL /, add('https://10.0.0.1'), withoutPrivate);
    await assertRefused(1, /MASTER_SECRET is not set/, add('https://example.com'), {
      MASTER_SECRET: '',
    });
    await assertRefused(1, /Account nobody@/, ['list', 'nobody@example.com']);
    for (const args of [['test'], ['remove'], ['roll-secret'], ['set', '--enable']] as const) {
      const [name, ...options] = args;
      await assertRefused(1, /Endpoint we_0+ not found/, [name, NOWHERE, ...options]);
    }
    await assertRefused(1, /No change was given/, ['set', NOWHERE]);
    await assertRefused(1, /is not the id of an event/, ['redeliver', NOWHERE, 'evt_1']);
    await assertRefused(2, /"top_up.done" is not one of/, add('x', '--types', 'top_up.done'));
    await assertRefused(2, /at most 7 days/, ['roll-secret', NOWHERE, '--overlap', '8d']);
    await assertRefused(2, /from 1 to 1000/, ['deliveries', NOWHERE, '--limit', '0']);
    assert.deepEqual(await ofApi(), []);
  });
});
