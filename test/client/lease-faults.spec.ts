/** Leases against a service with scripted answers: what is refused, lost or malformed costs no other call. */
import assert from 'node:assert/strict';
import type { FareboxError } from '@farebox/client';
import { Compile } from 'typebox/compile';
import { Metadata } from '../../src/schemas/charges.ts';
import { closeSettled } from '../support/lease-requests.ts';
import { until } from '../support/stack.ts';
import {
  EXPIRES_IN,
  leasesOfSuite,
  renewed,
  settledAll,
  settledOfSuite,
  taken,
  type Settlement,
} from './lease-script.ts';
import { answer, droppedLine, refusal } from './scripted-service.ts';

/** The first renewal is asked for after 8.5 seconds, and as many are left for another attempt on a busy machine. */
const SHORT_SECONDS = 20;

describe('client: leases and faults', () => {
  const { start, ending } = leasesOfSuite();
  const { settled, options, sequencesPaid } = settledOfSuite();

  it('release nothing while a batch of decided calls still waits for its answer', async () => {
    const sent: Settlement[] = [];
    const { farebox } = await start({
      settle: (body, n) => {
        sent.push(body);
        return n === 1 ? refusal(503, 'service_unavailable') : settledAll;
      },
    });
    const lease = ending(await farebox.lease({ ...options, amount: 100 }));
    for (let call = 0; call < 2_000; call += 1) lease.charge({ tool: 'search' });
    await closeSettled(lease);
    assert.deepEqual(
      sent.map(({ entries, final }) => [entries.length, final ?? false]),
      [
        [1_000, false],
        [1_000, false],
        [1_000, false],
        [0, true],
      ],
    );
  });

  it('refuse the metadata that the service refuses, and no other', async () => {
    const { farebox } = await start({});
    const lease = ending(await farebox.lease(options));
    const rules = Compile(Metadata);
    const samples: unknown[] = [
      {},
      { a: 'x', b: 1, c: true, d: null },
      { long: 'x'.repeat(500) },
      { long: 'x'.repeat(501) },
      { long: '\u{1f600}'.repeat(500) },
      { long: '\u{1f600}'.repeat(501) },
      { nul: 'a\0b' },
      { half: '\ud800' },
      { 'nul\0': 1 },
      { '': 1 },
      { ['x'.repeat(40)]: 1 },
      { ['x'.repeat(41)]: 1 },
      { ['\u{1f600}'.repeat(40)]: 1 },
      many(20),
      many(21),
      { nested: {} },
      { list: [1] },
      { infinite: Infinity },
      null,
      [],
      'text',
      7,
    ];
    for (const sample of samples) {
      const isValid = rules.Check(JSON.parse(JSON.stringify(sample)));
      const { remaining } = lease;
      const decide = () => lease.charge({ tool: 'search', metadata: sample as { a: string } });
      const label = JSON.stringify(sample);
      if (isValid) assert.doesNotThrow(decide, label);
      else assert.throws(decide, { code: 'invalid_request', param: 'metadata' }, label);
      assert.equal(lease.remaining < remaining, isValid, label);
    }
    await lease.close();
  });

  it('settle what was decided under the lease before, too', async () => {
    const first = Promise.withResolvers<void>();
    const { farebox, service } = await start({
      take: (n) => taken({ id: `lse_${n + 1}` }),
      settle: (_body, n) => (response, request) =>
        void (n === 0 ? first.promise : Promise.resolve()).then(() =>
          settledAll(response, request),
        ),
    });
    const lease = ending(await farebox.lease({ ...options, amount: 0.04 }));
    lease.charge({ tool: 'search' });
    lease.charge({ tool: 'search' });
    await until(() => lease.remaining > 0);
    lease.charge({ tool: 'search' });
    assert.equal(lease.leaseId, 'lse_2');
    await until(() => service.seen.some(({ path }) => path?.endsWith('/lse_1/settle')));
    const settledThen = lease.settle().then(() => settled.length);
    await until(() => settled.some(({ leaseId }) => leaseId === 'lse_2'));
    first.resolve();
    assert.equal(await settledThen, 3);
  });

  it('settle for as long as the caller waits, tell which calls are left, and keep settling these', async () => {
    const isBack = Promise.withResolvers<void>();
    const { farebox } = await start({
      settle: () => (response, request) =>
        void isBack.promise.then(() => settledAll(response, request)),
    });
    const lease = ending(await farebox.lease(options));
    lease.charge({ tool: 'search' });
    const ended = lease.settle({ timeoutMs: 100 });
    lease.charge({ tool: 'search' });
    const { unsettled } = await ended;
    assert.deepEqual(unsettled, [{ leaseId: 'lse_1', sequence: 1, tool: 'search', amount: 0.02 }]);
    await assert.rejects(lease.settle({ timeoutMs: -1 }), TypeError);
    isBack.resolve();
    assert.deepEqual(await lease.settle(), { unsettled: [] });
    assert.deepEqual(sequencesPaid(), [
      [1, true],
      [2, true],
    ]);
  });

  it('settle what was decided before, while more calls are always being decided', async () => {
    let isOver = false;
    const { farebox } = await start({
      settle: () => (response, request) => {
        if (!isOver) lease.charge({ tool: 'search' });
        settledAll(response, request);
      },
    });
    const lease = ending(await farebox.lease({ ...options, amount: 100 }));
    lease.charge({ tool: 'search' });
    assert.deepEqual(await lease.settle(), { unsettled: [] });
    isOver = true;
    assert.ok(lease.remaining > 99, `$${lease.remaining} is left`);
  });

  it('find the call for which a batch was refused, and settle the others', async () => {
    const { farebox } = await start({
      settle: (body) =>
        body.entries.some(({ tool }) => tool === 'bad')
          ? refusal(400, 'invalid_request')
          : settledAll,
    });
    const lease = ending(await farebox.lease({ ...options, tools: ['search', 'bad'] }));
    for (const tool of ['search', 'search', 'bad', 'search', 'search']) lease.charge({ tool });
    await lease.settle();
    await until(() => settled.length === 5);
    const expected = [1, 2, 3, 4, 5].map((sequence) => [sequence, sequence !== 3]);
    assert.deepEqual(sequencesPaid(), expected);
    const bad = settled[2];
    assert.ok(bad && !bad.paid);
    assert.equal(bad.code, 'invalid_request');
    assert.equal(lease.charge({ tool: 'search' }).sequence, 6);
    await closeSettled(lease);
  });

  it('release a first lease whose answer was lost', async () => {
    const { service, farebox } = await start({ take: (n) => (n === 0 ? droppedLine : taken()) });
    await assert.rejects(farebox.lease(options), {
      code: 'service_unavailable',
      outcome: 'unknown',
    });
    await until(() => service.seen.length === 3);
    assert.deepEqual(
      service.seen.map(({ path }) => path),
      ['/v1/leases', '/v1/leases', '/v1/leases/lse_1/release'],
    );
    assert.equal(service.keys[0], service.keys[1]);
  });

  it('say that a call was not charged when the next lease is refused or its answer is lost', async () => {
    const poor = refusal(402, 'insufficient_balance', { balance: 0, topUpUrl: 'https://x.test' });
    for (const [step, told] of [
      [droppedLine, { code: 'service_unavailable' }],
      [poor, { code: 'insufficient_balance', balance: 0, topUpUrl: 'https://x.test' }],
    ] as const) {
      const { farebox } = await start({ take: (n) => (n === 0 ? taken() : step) });
      const lease = ending(await farebox.lease({ ...options, amount: 0.02 }));
      lease.charge({ tool: 'search' });
      const error = await until(() => {
        try {
          lease.charge({ tool: 'search' });
        } catch (raised) {
          return (raised as FareboxError).code === told.code && (raised as FareboxError);
        }
        return undefined;
      });
      assert.partialDeepStrictEqual(error.toJSON(), { ...told, outcome: 'not_charged' });
      assert.equal(error.idempotencyKey, undefined);
      assert.match(error.message, /^The lease has too little left, and there is no next one yet: /);
    }
  });

  it('keep calls while the secret key is refused, and settle them when it is accepted', async () => {
    const { service, farebox } = await start({
      settle: (_, n) => (n < 2 ? refusal(401, 'invalid_secret_key') : settledAll),
    });
    const lease = ending(await farebox.lease(options));
    lease.charge({ tool: 'search' });
    lease.charge({ tool: 'search' });
    await lease.settle();
    await until(() => settled.length === 2);
    assert.ok(service.seen.length >= 4);
    assert.deepEqual(sequencesPaid(), [
      [1, true],
      [2, true],
    ]);
    await lease.close();
  });

  it('name the calls as unsettled that a revoked secret key leaves behind', async () => {
    const { farebox } = await start({ settle: () => refusal(401, 'invalid_secret_key') });
    const lease = ending(await farebox.lease(options));
    lease.charge({ tool: 'search' });
    const { unsettled } = await lease.close({ timeoutMs: 100 });
    assert.deepEqual(unsettled, [{ leaseId: 'lse_1', sequence: 1, tool: 'search', amount: 0.02 }]);
    assert.deepEqual(settled, []);
  });

  it('renew again after a lost renewal, when a settlement has shown the fence', async () => {
    const keys = new Map<string, string>();
    let fence = 1;
    let settling: Promise<unknown> | undefined;
    const { service, farebox } = await start({
      take: () => taken({ expiresIn: SHORT_SECONDS }),
      settle: (body) =>
        body.fence === fence ? settledAll : refusal(409, 'lease_fenced', { fence }),
      renew: (body, n) => (response, request) => {
        const key = String(request.headers['idempotency-key']);
        const sent = JSON.stringify(body);
        const isReused = (keys.get(key) ?? sent) !== sent;
        if (isReused) return refusal(422, 'idempotency_key_reused')(response, request);
        if (!keys.has(key)) fence += 1;
        keys.set(key, sent);
        // The settlement is sent after this renewal and before the next.
        if (n === 0) {
          lease.charge({ tool: 'search' });
          settling = lease.settle();
        }
        return (n === 0 ? droppedLine : renewed({ fence }))(response, request);
      },
    });
    const lease = ending(await farebox.lease({ ...options, expiresIn: SHORT_SECONDS }));
    await until(() => keys.size === 2);
    await settling;
    lease.charge({ tool: 'search' });
    await closeSettled(lease);
    const takes = service.seen.filter(({ path }) => path === '/v1/leases').length;
    assert.deepEqual([takes, fence, settled.length], [1, 3, 2]);
    assert.ok(settled.every(({ paid }) => paid));
  });

  it('take another lease when the renewal shows that somebody else has closed it', async () => {
    const { farebox } = await start({
      take: (n) => taken({ id: `lse_${n + 1}`, expiresIn: n === 0 ? SHORT_SECONDS : EXPIRES_IN }),
      renew: () => refusal(409, 'lease_closed'),
    });
    const lease = ending(await farebox.lease({ ...options, expiresIn: SHORT_SECONDS }));
    await until(() => lease.leaseId === 'lse_2' || lease.remaining > 1);
    assert.equal(lease.charge({ tool: 'search' }).leaseId, 'lse_2');
    await lease.close();
  });

  it('ask again with the same key when the answer to taking one was lost', async () => {
    const { service, farebox } = await start({
      take: (n) => (n === 1 || n === 2 ? droppedLine : taken({ id: `lse_${n}` })),
    });
    const lease = ending(await farebox.lease(options));
    for (let n = 0; n < 26; n += 1) lease.charge({ tool: 'search' });
    await until(() => lease.remaining > 1);
    const takes = service.seen.filter(({ path }) => path === '/v1/leases');
    const keys = takes.map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys.length, 4);
    assert.deepEqual([new Set(keys.slice(1)).size, new Set(keys).size], [1, 2]);
    await lease.close();
  });

  for (const [label, body] of [
    ['no results', {}],
    ['too few results', { results: [] }],
    ['results without a status', { results: [{ sequence: 1 }] }],
  ] as const) {
    it(`settle again after an answer with ${label}`, async () => {
      const { farebox } = await start({
        settle: (_, n) => (n === 0 ? answer(200, body) : settledAll),
      });
      const lease = ending(await farebox.lease(options));
      lease.charge({ tool: 'search' });
      await until(() => settled.length === 1);
      assert.deepEqual(sequencesPaid(), [[1, true]]);
      await closeSettled(lease);
    });
  }

  it('end by the wall clock too, because the monotonic clock stops while a machine is suspended', async () => {
    // The next lease never comes.
    const { farebox } = await start({ take: (n) => (n === 0 ? taken() : () => {}) });
    const { now } = Date;
    try {
      const lease = ending(await farebox.lease(options));
      const decide = () => lease.charge({ tool: 'search' });
      Date.now = () => now() - 3_600_000;
      decide();
      Date.now = () => now() - 3_600_000 + (EXPIRES_IN - 60) * 1_000;
      decide();
      assert.ok(lease.remaining > 0);
      Date.now = () => now() - 3_600_000 + EXPIRES_IN * 1_000;
      assert.equal(lease.remaining, 0);
      assert.throws(decide, { code: 'lease_used_up', message: /has ended/ });
      Date.now = now;
      assert.throws(decide, { code: 'lease_used_up' });
      Date.now = () => now() - 3_600_000;
      assert.throws(decide, { code: 'lease_used_up' });
    } finally {
      Date.now = now;
    }
  });

  it('refuse an amount with more than six decimals', async () => {
    const { farebox } = await start({});
    const lease = ending(await farebox.lease(options));
    for (const amount of [0.0050004, '0.0050004', '5e-3', 'text']) {
      const decide = () => lease.charge({ tool: 'search', amount });
      assert.throws(decide, { code: 'invalid_amount' }, String(amount));
    }
    lease.charge({ tool: 'search', amount: '0.005001' });
    assert.equal(lease.remaining, 0.994999);
  });
});

function many(count: number) {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [n, n]));
}
