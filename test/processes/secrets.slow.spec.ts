/**
 * Secrets stay where they belong. Every route is called in every caller's name, rightly and wrongly; money comes in and
 * goes out, an agent is called, an event is delivered. Afterwards no secret is in a log, a workflow's history
 * or an error.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { composeKey } from '../../src/domain/api-keys.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { openAgentHarness, type AgentHarness } from '../support/agent-harness.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { startAgent, type TestAgent } from '../support/agents.ts';
import { call, charge, type Answer } from '../support/http.ts';
import { signIn } from '../support/sessions.ts';
import { aloneInNamespace, until } from '../support/stack.ts';

/** Enough of a secret to use it, or to find the rest; what is shown to tell keys apart is shorter. */
const TELLING_LENGTH = 20;
const PAYLOAD = 'what the caller asks the agent in confidence';

describe('secrets', () => {
  let harness: AgentHarness;
  let receiver: TestAgent;
  let account: TestAccount;
  const secrets = new Map<string, string>();
  const errors: string[] = [];
  let requestId = '';
  let invocationId = '';

  before(async () => {
    harness = await openAgentHarness({ ...(await aloneInNamespace()), LOG_LEVEL: 'trace' });
    receiver = await startAgent();
    const { stack } = harness;
    account = await createAccount(stack.env, 10);
    secrets.set('the key that calls agents', harness.account.legacyKey);
    const { consumerKey, developerKey, legacyKey } = account;
    const session = await signIn(stack.api, stack.database.url, account.email);
    const unknownKey = composeKey('fare', 'developer', new Uint8Array(32).fill(7), 'live');
    const keys = { consumerKey, developerKey, legacyKey, unknownKey };
    for (const [name, key] of Object.entries({ ...keys, session })) secrets.set(name, key);
    for (const name of ['MASTER_SECRET', 'STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET'] as const) {
      secrets.set(name, stack.env[name] ?? '');
    }
    secrets.set('password', decodeURIComponent(new URL(stack.database.url).password));

    const cookie = { cookie: session, origin: stack.api.url };
    const send = async (method: string, path: string, options: Parameters<typeof call>[3]) => {
      const answer = await call(stack.api, method, path, options);
      if (answer.status >= 400) errors.push(JSON.stringify(answer.body));
      return answer;
    };

    made(await send('POST', '/v1/top-up', { key: consumerKey, body: { amount: 20 } }));
    const charged = made(await charge(stack.api, account, { amount: 1 }));
    made(
      await send('POST', `/v1/charges/${charged['id']}/refund`, { key: developerKey, body: {} }),
    );
    const endpoint = await send('POST', '/v1/webhook-endpoints', {
      headers: cookie,
      body: { url: receiver.url },
    });
    secrets.set('endpoint', made(endpoint)['secret'] ?? '');
    made(
      await send('POST', `/v1/webhook-endpoints/${made(endpoint)['id']}/test`, { headers: cookie }),
    );
    await harness.agent('agent');
    const grant = await harness.grant('agent');
    const invocation = await harness.post('/invoke', {
      targetAgentId: 'agent',
      grantId: grant.id,
      capability: 'echo',
      payload: { text: PAYLOAD },
    });
    invocationId = made(invocation)['id'] ?? '';
    await until(() => receiver.calls.length > 0);

    const refused = await charge(stack.api, account, { amount: 1_000 });
    requestId = refused.headers.get('x-request-id') ?? '';
    for (const key of Object.values(keys)) {
      await Promise.all(
        ENDPOINTS.map(async ({ method, path }) => {
          const target = path.replaceAll(/:\w+/g, key);
          const body = { apiKey: key, name: key, tool: 'x', amount: -1 };
          const sent = method === 'get' ? {} : { body };
          const inQuery = `${target}?${key}=1&cursor=${key}`;
          await send(method.toUpperCase(), target, { ...sent, key });
          await send(method.toUpperCase(), inQuery, { ...sent, headers: { 'x-service-key': key } });
          const headers = { ...cookie, 'idempotency-key': key };
          await send(method.toUpperCase(), target, { ...sent, headers });
        }),
      );
      await send('GET', `/${key}`, { key });
    }
  });
  after(async () => {
    await receiver?.stop();
    await harness?.close();
  });

  it('are in no log of any part', async () => {
    const folder = process.env['TEST_FOLDER'] ?? '';
    const names = (await readdir(folder)).filter((name) => name.endsWith('.log'));
    const logs = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
    assert.ok(
      logs.some((log) => log.includes(requestId)),
      'the log of the API is among them',
    );
    assert.deepEqual(found(logs.join('\n')), []);
  });

  it('are in no error', () => {
    assert.ok(errors.length > 100);
    assert.deepEqual(found(errors.join('\n')), []);
  });

  it('are in no history of a workflow, nor is an address or what an agent is asked', async () => {
    const { workflow } = harness.temporal.client;
    // Temporal lists a workflow some time after its beginning. Payloads are readable.
    const text = await until(async () => {
      const histories: string[] = [];
      for await (const { workflowId, runId } of workflow.list()) {
        const history = await workflow.getHandle(workflowId, runId).fetchHistory();
        histories.push(JSON.stringify(history, asText));
      }
      const all = histories.join('\n');
      return histories.length >= 3 && all.includes(invocationId) && all;
    });
    assert.deepEqual(
      found(text, [
        ['address', account.email],
        ['payload', PAYLOAD],
      ]),
      [],
    );
  });

  /** The names of the secrets in the text. */
  function found(text: string, more: readonly (readonly [string, string])[] = []): string[] {
    return [...secrets, ...more]
      .filter(([, secret]) => text.includes(secret.slice(-TELLING_LENGTH)))
      .map(([name]) => name);
  }
});

/** For JSON.stringify: the bytes of payloads as the text that they are. */
function asText(this: unknown, key: string, value: unknown): unknown {
  const raw = (this as Record<string, unknown>)[key];
  return raw instanceof Uint8Array ? Buffer.from(raw).toString('utf8') : value;
}

/** The body of an answer that did what it was asked. */
function made(answer: Answer): Record<string, string> {
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body as Record<string, string>;
}
