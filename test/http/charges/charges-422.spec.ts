/** `Idempotency-Key`: it names one charge, of one consumer by one developer, for any repeated request. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { uuidFloor, uuidOf, wireId } from '../../../src/domain/ids.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge, exchange } from '../../support/http.ts';
import { waitedTooLong } from '../../support/row-locks.ts';
import { until } from '../../support/stack.ts';

describe('POST /v1/charges with an Idempotency-Key', () => {
  let api: TestApi;
  let account: TestAccount;
  let keys = 0;

  before(async () => {
    api = await startTestApi({ servers: 2 });
    account = await api.createAccount(100);
  });
  after(() => api.stop());

  const newKey = () => `key-${(keys += 1)}`;
  const keyed = (key: string, changes: Readonly<Record<string, unknown>> = {}, who = account) =>
    charge(api, who, changes, { 'idempotency-key': key });

  it('returns the same answer again, marked as replayed, and charges once', async () => {
    const key = newKey();
    const first = await keyed(key);
    assert.equal(first.headers.get('idempotency-replayed'), null);
    await charge(api, account);
    await api.changingNothing(async () => {
      for (const server of api.servers) {
        const again = await charge(server, account, {}, { 'idempotency-key': key });
        assert.deepEqual(bodyOf(again, 201, ChargeReply), first.body);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
      }
    });
  });

  it('honors a key for 60 days', async () => {
    const key = newKey();
    const id = uuidOf('charge', bodyOf(await keyed(key), 201, ChargeReply).id);
    const old = uuidFloor(Date.now() - 60 * 86_400_000);
    await api.sql.query('update farebox.charges set id = $1 where id = $2', [old, id]);
    await api.changingNothing(async () => {
      assert.equal(bodyOf(await keyed(key), 201, ChargeReply).id, wireId('charge', old));
    });
  });

  it('treats the amount as a number and as a string as the same charge', async () => {
    const key = newKey();
    const first = await keyed(key, { amount: 0.2 });
    for (const amount of ['0.2', '0.20', '0.200000']) {
      const again = await keyed(key, { amount });
      assert.deepEqual(bodyOf(again, 201, ChargeReply), first.body);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
    }
    assertError(await keyed(key, { amount: '0.21' }), 422, 'idempotency_key_reused');
  });

  const others: Readonly<Record<string, Record<string, unknown>>> = {
    'another amount': { tool: 'other', amount: 0.03 },
    'another tool': { tool: 'search' },
    'other metadata': { tool: 'other', metadata: { a: 1 } },
  };
  for (const [what, changes] of Object.entries(others)) {
    it(`refuses the key of a charge for ${what}`, async () => {
      const key = newKey();
      bodyOf(await keyed(key, { tool: 'other' }), 201, ChargeReply);
      const answer = await api.changingNothing(() => keyed(key, changes));
      assertError(answer, 422, 'idempotency_key_reused');
    });
  }

  it('refuses a key without the amount when the charge had one, and the other way round', async () => {
    const body = { name: 'priced', price: 0.02 };
    await call(api, 'POST', '/v1/tools', { key: account.developerKey, body });
    const key = newKey();
    bodyOf(await keyed(key, { tool: 'priced', amount: undefined }), 201, ChargeReply);
    assertError(await keyed(key, { tool: 'priced' }), 422, 'idempotency_key_reused');
  });

  it('replays a charge at its price after the price has changed', async () => {
    const developer = await api.createAccount(10);
    const body = { name: 'cheap', price: 0.5 };
    await call(api, 'POST', '/v1/tools', { key: developer.developerKey, body });
    const priced = { tool: 'cheap', amount: undefined };
    const key = newKey();
    const first = await keyed(key, priced, developer);
    await api.sql.query(
      'update farebox.tools set price_micros = 900000, changed_at = now() where developer_id = $1',
      [developer.developerId.slice('dev_'.length)],
    );
    await until(async () => {
      const answer = await charge(api, developer, priced);
      return bodyOf(answer, 201, ChargeReply).amount === 0.9;
    });
    assert.deepEqual((await keyed(key, priced, developer)).body, first.body);
  });

  it('is separate for every consumer and every developer', async () => {
    const key = newKey();
    const other = await api.createAccount(1);
    const pairs = [
      account,
      other,
      { ...account, developerKey: other.developerKey },
      { ...account, consumerKey: other.consumerKey },
    ];
    const ids = new Set<string>();
    for (const pair of pairs) ids.add(bodyOf(await keyed(key, {}, pair), 201, ChargeReply).id);
    assert.equal(ids.size, pairs.length);
  });

  it('stores no refusal: the same key succeeds once the balance covers it', async () => {
    const poor = await api.createAccount(0.01);
    const key = newKey();
    assert.equal((await keyed(key, {}, poor)).status, 402);
    await api.sql.query('update farebox.consumers set credited_micros = 20000 where id = $1', [
      poor.consumerId.slice('cns_'.length),
    ]);
    assert.equal(bodyOf(await keyed(key, {}, poor), 201, ChargeReply).balance, 0);
  });

  it('makes one of eight simultaneous charges on two servers, and answers all alike', async () => {
    const lock = new Client({ connectionString: api.databaseUrl });
    await lock.connect();
    const chargeTogether = async () => {
      const key = newKey();
      await lock.query('begin');
      await lock.query('select from farebox.consumers where id = $1 for update', [
        account.consumerId.slice('cns_'.length),
      ]);
      let isAnswered = false;
      const asked = Array.from({ length: 8 }, (_, n) =>
        charge(api.servers[n % 2] ?? api, account, {}, { 'idempotency-key': key }).finally(
          () => (isAnswered = true),
        ),
      );
      await until(async () => isAnswered || (await waitingForLocks()) === 2);
      await lock.query('commit');
      const answers = await Promise.all(asked);
      return !answers.some(waitedTooLong) && answers;
    };
    try {
      const answers = await until(chargeTogether);
      const bodies = answers.map((answer) => bodyOf(answer, 201, ChargeReply));
      for (const body of bodies) assert.deepEqual(body, bodies[0]);
      const first = answers.filter(({ headers }) => headers.get('idempotency-replayed') === null);
      assert.equal(first.length, 1);
      const { rows } = await api.sql.query(
        'select count(*)::int as count from farebox.charges where id = $1',
        [bodies[0]?.id.slice('chg_'.length)],
      );
      assert.deepEqual(rows, [{ count: 1 }]);
    } finally {
      await lock.end();
    }
  });

  it('accepts any visible text of 1 to 255 characters, including commas', async () => {
    for (const key of ['1', '~', 'a, b', '"quoted"', 'k'.repeat(255)]) {
      bodyOf(await keyed(key), 201, ChargeReply);
    }
  });

  const badKeys: Readonly<Record<string, string>> = {
    'that is empty': '',
    'of 256 characters': 'k'.repeat(256),
    'with a tab in it': 'a\tb',
    'with a letter that is not ASCII': 'caf\u00e9',
  };
  for (const [what, key] of Object.entries(badKeys)) {
    it(`refuses a key ${what}`, async () => {
      const answer = await api.changingNothing(() => keyed(key));
      assertError(answer, 400, 'invalid_idempotency_key');
    });
  }

  it('refuses two keys, equal or not', async () => {
    const body = JSON.stringify({ apiKey: account.consumerKey, tool: 'search', amount: 1 });
    for (const second of ['one', 'two']) {
      const answer = await api.changingNothing(() =>
        exchange(
          api,
          [
            'POST /v1/charges HTTP/1.1',
            'Host: farebox',
            `Authorization: Bearer ${account.developerKey}`,
            'Content-Type: application/json',
            `Content-Length: ${body.length}`,
            'Idempotency-Key: one',
            `Idempotency-Key: ${second}`,
            'Connection: close',
            '',
            body,
          ].join('\r\n'),
        ),
      );
      assert.match(answer, /^HTTP\/1\.1 400 [^]*"code":"invalid_idempotency_key"/);
    }
  });

  async function waitingForLocks(): Promise<number> {
    const { rows } = await api.sql.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count ?? 0;
  }
});
