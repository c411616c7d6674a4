/** Refunds of charges: how much, to whom, how often, and how they are shown everywhere. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { uuidOf } from '../../../src/domain/ids.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import {
  ChargeReply,
  ChargesReply,
  DeveloperChargeReply,
  RefundReply,
} from '../../../src/schemas/charges.ts';
import { UsageReply } from '../../../src/schemas/balance.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { getReversalsVersion, recordReversals } from '../../../src/store/top-ups/reversals.ts';
import { dispute, processorId } from '../../support/payer.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { type Answer, assertError, bodyOf, call, charge, insistOn } from '../../support/http.ts';
import { holdConsumer, waitedTooLong } from '../../support/row-locks.ts';
import { until } from '../../support/stack.ts';

const key = (name: string) => ({ 'idempotency-key': name });

/** There is no Temporal and no Stripe: refunds need neither. */
describe('POST /v1/charges/:id/refund', () => {
  const api = openTestApi({ servers: 2 });
  let consumer: TestAccount;
  let developer: TestAccount;

  beforeEach(async () => {
    [consumer, developer] = [await api.createAccount(10), await api.createAccount(0)];
  });

  const made = async (amount: number, tool = 'search') => {
    const { developerKey } = developer;
    const answer = await charge(api, { ...consumer, developerKey }, { amount, tool });
    return bodyOf(answer, 201, ChargeReply);
  };
  const ask = (
    id: string,
    body: unknown = {},
    headers: Record<string, string> = {},
    server: { readonly url: string } = api,
  ): Promise<Answer> => {
    const { developerKey: key } = developer;
    return call(server, 'POST', `/v1/charges/${id}/refund`, { key, body, headers });
  };
  const insist = (...asked: Parameters<typeof ask>): Promise<Answer> =>
    insistOn(() => ask(...asked), [429]);
  const refund = async (id: string, body: unknown = {}) =>
    bodyOf(await ask(id, body), 201, RefundReply);
  const balance = async () =>
    bodyOf(await call(api, 'GET', '/v1/balance', { key: consumer.consumerKey }), 200, BalanceReply)
      .balance;
  const usage = async (query = '') =>
    bodyOf(
      await call(api, 'GET', `/v1/usage${query}`, { key: consumer.consumerKey }),
      200,
      UsageReply,
    );
  const single = async (id: string) =>
    bodyOf(
      await call(api, 'GET', `/v1/charges/${id}`, { key: developer.developerKey }),
      200,
      DeveloperChargeReply,
    );

  it('refunds everything when no amount is given, to be spent at once', async () => {
    const { id } = await made(4);
    const { createdAt, ...rest } = await refund(id);
    assert.match(rest.id, /^rf_[0-9a-f]{32}$/);
    assert.deepEqual(rest, { id: rest.id, chargeId: id, amount: 4, refunded: 4 });
    assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000);
    assert.equal(await balance(), 10);
    await made(10);
    assert.equal(await balance(), 0);
  });

  it('refunds part by part, then the rest, then nothing', async () => {
    const { id } = await made(1);
    assert.deepEqual((await refund(id, { amount: 0.3 })).refunded, 0.3);
    assert.deepEqual((await refund(id, { amount: 0.000001 })).refunded, 0.300001);
    const rest = await refund(id);
    assert.deepEqual([rest.amount, rest.refunded], [0.699999, 1]);
    await api.changingNothing(async () => {
      const nothingLeft = { refundable: 0 };
      assertError(await ask(id), 400, 'refund_exceeds_charge', undefined, nothingLeft);
      const more = await ask(id, { amount: 0.000001 });
      assertError(more, 400, 'refund_exceeds_charge', 'amount', nothingLeft);
    });
    assert.equal(await balance(), 10);
  });

  it('refunds no more than is left, and says how much that is', async () => {
    const { id } = await made(1);
    await refund(id, { amount: 0.75 });
    await api.changingNothing(async () => {
      for (const amount of [0.250001, 1, 10, 1_000_000]) {
        const answer = await ask(id, { amount });
        assertError(answer, 400, 'refund_exceeds_charge', 'amount', { refundable: 0.25 });
      }
    });
  });

  it('never refunds more than the charge took, under concurrent requests', async () => {
    const { id } = await made(1);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => insist(id, { amount: 0.03 }, {}, api.servers[n % 2])),
    );
    const refunds = answers.filter(({ status }) => status === 201);
    assert.equal(refunds.length, 33);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      assertError(answer, 400, 'refund_exceeds_charge', 'amount', { refundable: 0.01 });
    }
    const totals = refunds.map((answer) => bodyOf(answer, 201, RefundReply).refunded);
    assert.equal(new Set(totals).size, 33);
    assert.equal(Math.max(...totals), 0.99);
    assert.equal(await balance(), 9.99);
  });

  it('refunds everything once, under concurrent requests', async () => {
    const { id } = await made(1);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => insist(id, {}, {}, api.servers[n % 2])),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(await balance(), 10);
  });

  it('credits the consumer in turn with charges', async () => {
    const { id } = await made(5);
    const { developerKey } = developer;
    const account = { ...consumer, developerKey };
    const [refunds, charges] = await Promise.all([
      Promise.all(Array.from({ length: 25 }, () => insist(id, { amount: 0.2 }))),
      Promise.all(Array.from({ length: 60 }, () => charge(api, account, { amount: 0.1 }))),
    ]);
    assert.ok(refunds.every(({ status }) => status === 201));
    const count = charges.filter(({ status }) => status === 201).length;
    assert.ok(count >= 50, `${count} of 60 charges, though there was enough for 50`);
    assert.equal(Math.round((await balance()) * 10), 100 - count);
    assert.equal(Math.round((await usage()).total * 10), count);
  });

  it('pays a debt before any of it can be spent', async () => {
    const [one, other] = [await made(3), await made(1)];
    // The dispute takes the balance of $6.00, and $3.50 of the spent money is owed.
    await chargeBack(9_500_000);
    const after: number[] = [await balance()];
    for (const [{ id }, amount] of [
      [one, 3],
      [other, 0.4],
      [other, 0.6],
    ] as const) {
      await refund(id, { amount });
      after.push(await balance());
    }
    assert.deepEqual(after, [0, 0, 0, 0.5]);
    assert.equal((await usage()).total, 0);
  });

  it('pays a debt after its own credit, even if it waited for the balance', async () => {
    const { id } = await made(4);
    await chargeBack(10_000_000);
    const row = await holdConsumer(api.databaseUrl, consumer.consumerId);
    const refunding = refund(id);
    await row.waited(1);
    await row.release();
    await refunding;
    // In a statement, the balance would otherwise be below zero between the two, at the end of a month perhaps.
    const { rows } = await api.sql.query<{ kind: string }>(
      `select kind from farebox.movements where consumer_id = $1 order by created_at desc, id desc limit 2`,
      [uuidOf('consumer', consumer.consumerId)],
    );
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['dispute', 'charge_refund'],
    );
  });

  it('leaves the rest of the books correct when a dispute takes the refunded money', async () => {
    const { id } = await made(4);
    await refund(id, { amount: 3 });
    // $6.00 of the top-up is unspent, and $3.00 was refunded.
    await chargeBack(8_000_000);
    assert.equal(await balance(), 1);
    await refund(id);
    assert.equal(await balance(), 2);
  });

  describe('with an Idempotency-Key', () => {
    it('is made once, and gives the same answer to the same request', async () => {
      const { id } = await made(1);
      const first = await ask(id, { amount: 0.5 }, key('once'));
      const body = bodyOf(first, 201, RefundReply);
      assert.equal(first.headers.get('idempotency-replayed'), null);
      await refund(id, { amount: 0.25 });
      for (const server of api.servers) {
        const again = await ask(id, { amount: 0.5 }, key('once'), server);
        assert.deepEqual(bodyOf(again, 201, RefundReply), body);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
      }
      assert.equal(await balance(), 9.75);
    });

    it('gives the same answer when nothing is left', async () => {
      const { id } = await made(1);
      const first = bodyOf(await ask(id, {}, key('all')), 201, RefundReply);
      assert.deepEqual(bodyOf(await ask(id, {}, key('all')), 201, RefundReply), first);
    });

    it('refuses another amount under the same key', async () => {
      const { id } = await made(1);
      bodyOf(await ask(id, { amount: 0.5 }, key('half')), 201, RefundReply);
      await api.changingNothing(async () => {
        for (const body of [{ amount: 0.25 }, { amount: 2 }, {}]) {
          assertError(await ask(id, body, key('half')), 422, 'idempotency_key_reused');
        }
      });
    });

    it('is made once, under concurrent requests', async () => {
      const { id } = await made(1);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          insist(id, { amount: 0.01 }, key('race'), api.servers[n % 2]),
        ),
      );
      const ids = answers.map((answer) => bodyOf(answer, 201, RefundReply).id);
      assert.equal(new Set(ids).size, 1);
      const replays = answers.filter(({ headers }) => headers.get('idempotency-replayed'));
      assert.equal(replays.length, 19);
      assert.equal(await balance(), 9.01);
    });

    it('belongs to one charge', async () => {
      const [one, other] = [await made(1), await made(1)];
      const ids = await Promise.all(
        [one, other].map(async ({ id }) => bodyOf(await ask(id, {}, key('k')), 201, RefundReply)),
      );
      assert.notEqual(ids[0]?.id, ids[1]?.id);
    });

    it('is free again after a refusal', async () => {
      const { id } = await made(1);
      const tooMuch = await ask(id, { amount: 2 }, key('again'));
      assertError(tooMuch, 400, 'refund_exceeds_charge', 'amount', { refundable: 1 });
      bodyOf(await ask(id, { amount: 1 }, key('again')), 201, RefundReply);
    });

    it('finds out what happened to a refund whose database connection broke', async () => {
      const { id } = await made(1);
      const holder = new Client({ connectionString: api.databaseUrl });
      await holder.connect();
      await holder.query('begin');
      await holder.query('select from farebox.consumers where id = $1 for update', [
        consumer.consumerId.slice('cns_'.length),
      ]);
      await api.changingNothing(async () => {
        const answer = await until(async () => {
          const asked = ask(id, {}, key('lost'));
          let hasEnded = false;
          void asked.finally(() => (hasEnded = true));
          const backend = await until(async () => (await api.waitingBackend()) ?? hasEnded);
          if (backend !== true) await api.sql.query('select pg_terminate_backend($1)', [backend]);
          const broken = await asked;
          return !waitedTooLong(broken) && broken;
        });
        assertError(answer, 500, 'outcome_unknown');
      });
      await holder.end();
      const again = await ask(id, {}, key('lost'));
      assert.equal(bodyOf(again, 201, RefundReply).amount, 1);
      assert.equal(again.headers.get('idempotency-replayed'), null);
    });
  });

  // Across the end of a month, the statements of the two parties would otherwise disagree forever.
  it('has one time in the books of both parties, after any wait for the consumer', async () => {
    const { id } = await made(1);
    const refundBehind = async () => {
      const held = await holdConsumer(api.databaseUrl, consumer.consumerId);
      const asked = ask(id);
      await held.waited(1, asked);
      const clock = await api.sql.query<{ at: Date }>('select clock_timestamp() as at');
      await held.release();
      const answer = await asked;
      return !waitedTooLong(answer) && { answer, clock };
    };
    const { answer, clock } = await until(refundBehind);
    const { createdAt } = bodyOf(answer, 201, RefundReply);
    const { rows } = await api.sql.query<{ at: Date }>(
      `select created_at as at from farebox.movements
       where consumer_id = $1 and kind = 'charge_refund'`,
      [consumer.consumerId.slice('cns_'.length)],
    );
    assert.equal(rows[0]?.at.toISOString(), createdAt);
    assert.ok(createdAt >= (clock.rows[0]?.at.toISOString() ?? ''), createdAt);
  });

  it('leaves the charge and its receipt unchanged, to the byte', async () => {
    const { id, receipt } = await made(1);
    const rowOf = async () =>
      (await api.sql.query('select * from farebox.charges where id = $1', [id.slice(4)])).rows[0];
    const [before, view] = [await rowOf(), await single(id)];
    assert.equal(view.refunded, 0);
    await refund(id, { amount: 0.4 });
    assert.deepEqual(await rowOf(), before);
    assert.deepEqual(await single(id), { ...view, refunded: 0.4 });
    const { developerKey } = developer;
    const verified = await call(api, 'POST', '/v1/receipts/verify', {
      key: developerKey,
      body: { receipt },
    });
    assert.equal((verified.body as { valid: boolean }).valid, true);
  });

  it('shows the refund next to the charge, to consumer and developer', async () => {
    const { id } = await made(1, 'partly');
    await made(2, 'not');
    await refund(id, { amount: 0.1 });
    await refund(id, { amount: 0.2 });
    const shown = [
      ['not', 2, 0],
      ['partly', 1, 0.3],
    ];
    const { charges, total } = await usage();
    assert.deepEqual(
      charges.map(({ tool, amount, refunded }) => [tool, amount, refunded]),
      shown,
    );
    assert.equal(total, 2.7);
    const listed = await call(api, 'GET', '/v1/charges', { key: developer.developerKey });
    assert.deepEqual(
      bodyOf(listed, 200, ChargesReply).charges.map((c) => [c.tool, c.amount, c.refunded]),
      shown,
    );
  });

  it('replays the same charge for its key: a replay ignores refunds', async () => {
    const headers = { 'idempotency-key': 'charge once' };
    const { developerKey } = developer;
    const account = { ...consumer, developerKey };
    const first = bodyOf(await charge(api, account, { amount: 1 }, headers), 201, ChargeReply);
    await refund(first.id);
    const again = bodyOf(await charge(api, account, { amount: 1 }, headers), 201, ChargeReply);
    assert.deepEqual(again, first);
    assert.equal(await balance(), 10);
  });

  it('lowers the usage total of its tool, and of the time of the charge', async () => {
    const { id, createdAt } = await made(1, 'search');
    await made(1, 'read');
    await until(() => Date.now() > Date.parse(createdAt) + 1, { intervalMs: 1 });
    const refunded = await refund(id, { amount: 0.4 });
    await until(() => Date.now() > Date.parse(refunded.createdAt), { intervalMs: 1 });
    const { createdAt: at } = refunded;
    const after = new Date(Date.parse(at) + 1).toISOString();
    assert.equal((await usage('?tool=search')).total, 0.6);
    assert.equal((await usage('?tool=read')).total, 1);
    assert.equal((await usage(`?to=${at}`)).total, 2);
    assert.equal((await usage(`?from=${at}`)).total, -0.4);
    assert.equal((await usage(`?from=${at}&tool=read`)).total, 0);
    assert.equal((await usage(`?from=${after}`)).total, 0);
    assert.deepEqual((await usage(`?from=${at}`)).charges, []);
    const [listed] = (await usage(`?to=${at}&tool=search`)).charges;
    assert.equal(listed?.refunded, 0.4, 'what went back later is shown beside the charge');
  });

  it('is only for the developer who made the charge', async () => {
    const { id } = await made(1);
    const stranger = await api.createAccount(10);
    await api.changingNothing(async () => {
      for (const { developerKey: key } of [stranger, consumer]) {
        const answer = await call(api, 'POST', `/v1/charges/${id}/refund`, { key, body: {} });
        assertError(answer, 404, 'not_found');
      }
    });
  });

  const absent = [
    'chg_',
    'x',
    `chg_${'0'.repeat(32)}`,
    `tu_${'0'.repeat(32)}`,
    '..%2F..',
    'chg_%00',
  ];
  for (const id of [...absent, '__proto__', 'x'.repeat(5_000)]) {
    it(`answers not_found for the charge ${id.slice(0, 40)}`, async () => {
      assertError(await ask(id), 404, 'not_found');
    });
  }

  it('accepts the amount as a decimal string, and a number with the same key as the same refund', async () => {
    const { id } = await made(1);
    const first = await ask(id, { amount: '0.30' }, key('text'));
    assert.equal(bodyOf(first, 201, RefundReply).amount, 0.3);
    const again = await ask(id, { amount: 0.3 }, key('text'));
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.deepEqual(again.body, first.body);
  });

  for (const amount of [
    0,
    -1,
    0.0000001,
    1e-9,
    1e21,
    1e300,
    '-1',
    '1e0',
    '',
    true,
    null,
    [1],
    {},
  ]) {
    it(`refuses ${JSON.stringify(amount)} as an amount`, async () => {
      const { id } = await made(1);
      await api.changingNothing(async () => {
        assertError(await ask(id, { amount }), 400, 'invalid_amount', 'amount');
      });
    });
  }

  for (const body of [null, [], 'all', 1]) {
    it(`refuses ${JSON.stringify(body)} as a body`, async () => {
      const { id } = await made(1);
      await api.changingNothing(async () => {
        assertError(await ask(id, body), 400, 'invalid_request');
      });
    });
  }

  it('refuses a missing body, so that a lost one does not refund everything', async () => {
    const { id } = await made(1);
    const { developerKey: key } = developer;
    await api.changingNothing(async () => {
      const path = `/v1/charges/${id}/refund`;
      assertError(await call(api, 'POST', path, { key }), 415, 'unsupported_media_type');
      assertError(await call(api, 'POST', path, { key, rawBody: '' }), 400, 'invalid_json');
    });
  });

  it('refuses an invalid key', async () => {
    const { id } = await made(1);
    await api.changingNothing(async () => {
      const answer = await ask(id, {}, { 'idempotency-key': 'x'.repeat(256) });
      assertError(answer, 400, 'invalid_idempotency_key');
    });
  });

  /** A lost dispute over the consumer's top-up. */
  async function chargeBack(micros: number): Promise<void> {
    const database = await createDatabase(api.databaseUrl, { maxPoolSize: 1, onError: () => {} });
    // A dispute needs a payment, which a manual credit does not have.
    const { rows } = await api.sql.query<{ id: string }>(
      `update farebox.top_ups set method = 'checkout', session_id = 'cs_' || id, payment_intent_id = 'pi_' || id
       where consumer_id = $1 returning id`,
      [consumer.consumerId.slice('cns_'.length)],
    );
    const { id } = rows[0] ?? assert.fail();
    const version = await getReversalsVersion(database, id);
    const lost = dispute(processorId('dp'), micros, 'lost');
    assert.ok(await recordReversals(database, id, version, [lost]));
    await database.end();
  }
});
