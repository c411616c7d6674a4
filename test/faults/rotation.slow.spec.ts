/**
 * A master secret is rotated under traffic: two API processes and a worker are restarted one after the other, first
 * with the new secret as the second of the list, then as the first. What one process signs is checked at the other.
 * test/signing/rotation.spec.ts shows what each step changes.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { Farebox, verifyPublicReceipt } from '@farebox/client';
import type { Static } from 'typebox';
import { UsageReply } from '../../src/schemas/balance.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { NewKeyReply } from '../../src/schemas/keys.ts';
import { PublicKeysReply, PublicReceiptReply, VerifyReply } from '../../src/schemas/receipts.ts';
import { NewWebhookEndpointReply } from '../../src/schemas/webhook-endpoints.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { endAll } from '../support/end-all.ts';
import { bodyOf, call, charge, type Answer } from '../support/http.ts';
import { startReceiver, verify, type Receiver } from '../support/receiver.ts';
import { signIn } from '../support/sessions.ts';
import {
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type Environment,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';

const [OLD, NEW] = [1, 2].map(() => randomBytes(32).toString('hex'));
const STEPS = [`1:${OLD},2:${NEW}`, `2:${NEW},1:${OLD}`];
/** After each restart, so that each process makes something and checks what the other one made. */
const ROUNDS = 4;

type Place = { readonly url: string };

describe('a rotation of the master secret under traffic', () => {
  // Three processes are restarted twice, one after the other, under traffic.
  let stack: Stack<ServerProcess>;
  let receiver: Receiver;
  let account: TestAccount;
  /** The running processes; each place of an API keeps its port. */
  const running: ServerProcess[] = [];

  before(async () => {
    receiver = await startReceiver();
    stack = await startProcesses({
      env: { MASTER_SECRET: OLD, ALLOW_PRIVATE_ENDPOINTS: 'true' },
    });
    running.push(stack.api, await startApiProcess({ env: { ...stack.env, ...OWN_PLACE } }));
    running.push(stack.worker);
    account = await createAccount(stack.env, 1_000);
    bodyOf(await charge(stack.api, account), 201, ChargeReply);
  });
  after(() =>
    endAll(
      ...running.map((server) => () => server.stop()),
      () => stack.stop(),
      () => receiver.stop(),
    ),
  );

  it('invalidates no receipt, link, session, cursor or signing secret at any step', async () => {
    const [one, other] = running as [ServerProcess, ServerProcess];
    await eventsArrive(one, other);
    const traffic = startTraffic([one, other]);
    try {
      await traffic.goesOn();
      for (const list of STEPS) {
        const env = { ...stack.env, MASTER_SECRET: list };
        for (const [index, server] of running.entries()) {
          server.kill('SIGTERM');
          assert.equal(await server.exited, 'exit code 0');
          running[index] = await startAgain(server, env);
          await traffic.goesOn();
          await eventsArrive(other, one);
        }
      }
    } finally {
      await traffic.stop();
    }
    assert.deepEqual([...traffic.signers], ['1', '2']);
    await proveBooks({ ...stack.env, MASTER_SECRET: STEPS.at(-1) });
  });

  const OWN_PLACE = { PORT: undefined, BASE_URL: undefined };

  /** Rounds of requests to both processes, in turns, until it is stopped or something is refused. */
  function startTraffic([one, other]: readonly [Place, Place]) {
    const clients = [one, other].map(
      ({ url }) => new Farebox({ secretKey: account.developerKey, baseUrl: url }),
    );
    const kept = { links: [] as string[], receipts: [] as string[] };
    const traffic = {
      rounds: 0,
      isStopped: false,
      signers: new Set<string>(),
      goesOn: async () => {
        const { rounds } = traffic;
        const hasGoneOn = until(() => traffic.rounds >= rounds + ROUNDS);
        await Promise.race([hasGoneOn, all.then(() => hasGoneOn)]);
      },
      stop: async () => {
        traffic.isStopped = true;
        await all;
      },
    };
    const round = async (maker: Place, checker: Place) => {
      const receipt = await checkedReceipt(maker, checker);
      traffic.signers.add(receipt.split('.')[1] ?? '');
      kept.receipts.push(receipt);
      kept.links.push(await topUpLinkOf(maker));
      // The first of each kind is older than the rotation.
      for (const at of [0, -1]) {
        assert.equal(await opened(checker, kept.links.at(at) ?? ''), 200);
        const headers = { cookie: sessions.at(at) ?? '' };
        const session = await asks(checker, 'GET', '/v1/session', { headers });
        assert.equal(session.status, 200, JSON.stringify(session.body));
        for (const client of clients) {
          const check = await client.verifyReceipt(kept.receipts.at(at) ?? '');
          assert.equal(check.valid, true);
        }
      }
      await assertPaged(maker, checker);
    };
    const goOn = async () => {
      while (!traffic.isStopped) {
        await round(one, other);
        await round(other, one);
        traffic.rounds += 1;
      }
    };
    const all = goOn();
    all.catch(() => {}); // goesOn and stop report the error
    return traffic;
  }

  /** A receipt that both processes sign, verify and make public alike. */
  async function checkedReceipt(maker: Place, checker: Place): Promise<string> {
    const once = { 'idempotency-key': randomUUID() };
    const charged = (place: Place) => patiently(() => charge(place, account, {}, once));
    const { receipt } = bodyOf(await charged(maker), 201, ChargeReply);
    assert.equal(bodyOf(await charged(checker), 201, ChargeReply).receipt, receipt);
    const held = { key: account.developerKey, body: { receipt } };
    const verified = await asks(checker, 'POST', '/v1/receipts/verify', held);
    assert.equal(bodyOf(verified, 200, VerifyReply).valid, true);
    const shown = await asks(maker, 'POST', '/v1/receipts/public', held);
    const { keys } = bodyOf(
      await asks(checker, 'GET', '/v1/receipts/public-keys'),
      200,
      PublicKeysReply,
    );
    const offline = await verifyPublicReceipt(keys, bodyOf(shown, 200, PublicReceiptReply).receipt);
    assert.equal(offline.valid, true);
    return receipt;
  }

  async function topUpLinkOf(place: Place): Promise<string> {
    const refused = await patiently(() => charge(place, account, { amount: 100_000 }));
    return (refused.body as { error: { topUpUrl: string } }).error.topUpUrl;
  }

  async function assertPaged(first: Place, second: Place): Promise<void> {
    const usage = async (place: Place, query: string) =>
      bodyOf(
        await asks(place, 'GET', `/v1/usage?limit=1${query}`, { key: account.consumerKey }),
        200,
        UsageReply,
      );
    const { nextCursor } = await usage(first, '');
    assert.equal((await usage(second, `&cursor=${nextCursor}`)).charges.length, 1);
  }

  const endpoints: Static<typeof NewWebhookEndpointReply>[] = [];
  const sessions: string[] = [];

  /** Every endpoint so far gets an event that its secret verifies, and so does a new one. */
  async function eventsArrive(maker: Place, checker: Place): Promise<void> {
    const name = randomUUID();
    const made = async (place: Place) =>
      bodyOf(
        await asks(place, 'POST', '/v1/webhook-endpoints', {
          headers: { authorization: `Bearer ${account.developerKey}`, 'idempotency-key': name },
          body: { url: `${receiver.url}?${name}`, types: ['key.created'] },
        }),
        201,
        NewWebhookEndpointReply,
      );
    const endpoint = await made(maker);
    assert.deepEqual(await made(checker), endpoint);
    endpoints.push(endpoint);
    const { id: keyId } = await newKey(maker, checker, name);
    for (const { secret } of endpoints) {
      await until(() =>
        receiver
          .received('key.created')
          .some((event) => event.payload.data['id'] === keyId && isSignedBy(secret, event)),
      );
    }
  }

  /** The same key from both processes. */
  async function newKey(maker: Place, checker: Place, name: string) {
    const cookie = await patiently(() => signIn(maker, stack.database.url, account.email));
    sessions.push(cookie);
    const made = async (place: Place) => {
      const headers = { cookie, origin: place.url, 'idempotency-key': name };
      const body = { kind: 'developer', name };
      return bodyOf(await asks(place, 'POST', '/v1/keys', { headers, body }), 201, NewKeyReply);
    };
    const key = await made(maker);
    assert.deepEqual(await made(checker), key);
    return key;
  }
});

function startAgain({ url }: ServerProcess, env: Environment): Promise<ServerProcess> {
  if (url === '') return startWorkerProcess({ env });
  return startApiProcess({ env: { ...env, PORT: new URL(url).port, BASE_URL: url } });
}

async function opened(place: Place, link: string): Promise<number> {
  const { pathname, search } = new URL(link);
  return (await patiently(() => fetch(`${place.url}${pathname}${search}`))).status;
}

function asks(...request: Parameters<typeof call>): Promise<Answer> {
  return patiently(() => call(...request));
}

function isSignedBy(secret: string, event: Parameters<typeof verify>[1]): boolean {
  try {
    verify(secret, event);
    return true;
  } catch {
    return false;
  }
}

/** Repeats a request to a process that is being restarted, and no other. */
async function patiently<T extends { readonly status: number } | string>(
  request: () => Promise<T>,
): Promise<T> {
  const { answer } = await until(async () => {
    const received = await request().catch((error: unknown) => {
      // `fetch` rejects so when nothing listens or the connection is cut.
      if (error instanceof TypeError) return undefined;
      throw error;
    });
    const isAway = typeof received === 'object' && received.status === 503;
    return received !== undefined && !isAway && { answer: received };
  });
  return answer;
}
