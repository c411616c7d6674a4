/** Leases of the client against a real API: decided here, settled in batches, and never more than is reserved. */
import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Farebox, FareboxError, type LeaseOptions, type SettledCall } from '@farebox/client';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { showBudget } from '../support/budget-requests.ts';
import { endAll } from '../support/end-all.ts';
import { startFaultyLine } from '../support/faulty-line.ts';
import { closeSettled, makeLeasable, takeLease } from '../support/lease-requests.ts';
import { until } from '../support/stack.ts';

const TOOLS = [{ name: 'search', price: '0.02' }];

describe('client: leases', () => {
  let api: TestApi;
  let account: TestAccount;
  let farebox: Farebox;
  let folder: string;
  let settled: SettledCall[];

  before(async () => {
    api = await startTestApi();
    folder = await mkdtemp(join(tmpdir(), 'farebox-leases-'));
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    farebox = new Farebox({ secretKey: account.developerKey, baseUrl: api.url });
    settled = [];
  });
  after(() =>
    endAll(
      () => proveBooks(api.env, { processor: false }),
      () => api.stop(),
      () => rm(folder, { recursive: true, force: true }),
    ),
  );

  const leasable = (body: object = {}) => makeLeasable(api, account.consumerKey, { ...body });
  const optionsFor = (apiKey: string): LeaseOptions & { journal?: undefined } => ({
    apiKey,
    tools: TOOLS,
    amount: 1,
    onSettled: (results) => settled.push(...results),
  });
  it('answer at once, and tell ids and receipts when the calls are settled', async () => {
    const { spendKey, budgetId } = await leasable();
    const lease = await farebox.lease(optionsFor(spendKey));
    const first = lease.charge({ tool: 'search', metadata: { call: 1 } });
    assert.deepEqual(first, {
      paid: true,
      provisional: true,
      leaseId: lease.leaseId,
      sequence: 1,
    });
    assert.equal(lease.charge({ tool: 'search', amount: '0.005' }).sequence, 2);
    assert.equal(lease.remaining, 0.975);
    assert.equal(raised(() => lease.charge({ tool: 'other' })).code, 'unknown_tool');
    for (const amount of [0, -1, 0.03]) {
      const error = raised(() => lease.charge({ tool: 'search', amount }));
      assert.equal(error.code, 'invalid_amount');
    }
    // Without being asked to, after a second.
    await until(() => settled.length === 2);
    assert.ok(settled.every(({ id, code }) => id?.startsWith('chg_') && code === undefined));
    for (const each of settled) {
      assert.ok(each.paid);
      const { valid, charge } = await farebox.verifyReceipt(each.receipt);
      assert.deepEqual([valid, charge?.id, charge?.amount], [true, each.id, each.amount]);
    }
    await closeSettled(lease);
    assert.equal(raised(() => lease.charge({ tool: 'search' })).code, 'lease_closed');
    assert.equal((await showBudget(api, account.consumerKey, budgetId)).used, 0.025);
  });

  it('spend a budget to its end and no further, from two clients at once', async () => {
    const { spendKey, budgetId } = await leasable({ limit: 1.5 });
    const lowered = { ...optionsFor(spendKey), amount: 0.4 };
    const leases = await Promise.all([farebox.lease(lowered), farebox.lease(lowered)]);
    let decided = 0;
    const spendAll = async (lease: (typeof leases)[number]) => {
      for (;;) {
        try {
          lease.charge({ tool: 'search' });
          decided += 1;
          if (decided % 5 === 0) await lease.settle();
        } catch (error) {
          assert.ok(FareboxError.isInstance(error));
          if (error.code === 'spend_limit_reached') return;
          assert.equal(error.code, 'lease_used_up');
          await new Promise(setImmediate);
        }
      }
    };
    await Promise.all(leases.map(spendAll));
    await Promise.all(leases.map(closeSettled));
    await until(() => settled.length === decided);
    assert.ok(settled.every(({ paid }) => paid));
    const { used } = await showBudget(api, account.consumerKey, budgetId);
    assert.equal(Math.round(used * 1e6), decided * 20_000);
    // The later one took a smaller lease. What one gave back at the end, the other may not have seen.
    assert.ok(used > 1.4 && used <= 1.5, String(used));
  });

  it('take what is left when one limit after another leaves less', async () => {
    const { spendKey } = await leasable({ limit: 5, maxLease: 2 });
    await farebox.charge({ apiKey: spendKey, tool: 'search', amount: 4 });
    const lease = await farebox.lease({ ...optionsFor(spendKey), amount: 3 });
    assert.equal(lease.remaining, 1);
    await closeSettled(lease);
  });

  it('give back a rest that covers no tool, for a lease that does', async () => {
    account = await api.createAccount(1.5);
    farebox = new Farebox({ secretKey: account.developerKey, baseUrl: api.url });
    const { spendKey } = await leasable();
    const tools = [{ name: 'search', price: '0.3' }];
    const lease = await farebox.lease({ ...optionsFor(spendKey), tools });
    for (let n = 0; n < 5; n += 1) {
      await until(() => {
        try {
          return lease.charge({ tool: 'search' });
        } catch (error) {
          assert.ok(FareboxError.isInstance(error), String(error));
          return undefined;
        }
      });
    }
    await closeSettled(lease);
    assert.deepEqual(
      settled.map(({ paid }) => paid),
      [true, true, true, true, true],
    );
  });

  it('settle what a journal has of an earlier process, once', async () => {
    const { spendKey } = await leasable();
    const { id } = await takeLease(api, account, spendKey);
    const journal = join(folder, 'calls');
    const line = (sequence: number) =>
      `${JSON.stringify([id, { sequence, tool: 'search', micros: 20_000 }])}\n`;
    // Two were settled, and the last line was torn by the crash.
    const text = `${[1, 2, 3, 4].map(line).join('')}${JSON.stringify([id, 1, 2])}\n`;
    await writeFile(journal, `${text}${line(5).slice(0, 20)}`);
    const lease = await farebox.lease({ ...optionsFor(spendKey), journal });
    await until(() => settled.length === 2);
    assert.deepEqual(
      settled.map(({ paid, leaseId, sequence }) => [paid, leaseId, sequence]),
      [
        [true, id, 3],
        [true, id, 4],
      ],
    );
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => lease.charge({ tool: 'search' })),
    );
    assert.deepEqual(
      answers.map(({ sequence }) => sequence),
      Array.from({ length: 40 }, (_, n) => n + 1),
    );
    assert.match(await readFile(journal, 'utf8'), /"sequence":40,/);
    await closeSettled(lease);
    await until(() => settled.length === 42);
    assert.ok(settled.every(({ paid }) => paid));
    const again = await farebox.lease({ ...optionsFor(spendKey), journal });
    await closeSettled(again);
    assert.equal(settled.length, 42);
  });

  it('refuse a journal that another lease of the process uses, also by another path', async () => {
    const { spendKey } = await leasable();
    const journal = join(folder, 'shared');
    const link = join(folder, 'link');
    const lease = await farebox.lease({ ...optionsFor(spendKey), journal });
    await symlink(journal, link);
    await lease.charge({ tool: 'search' });
    for (const path of [journal, link]) {
      await assert.rejects(farebox.lease({ ...optionsFor(spendKey), journal: path }), TypeError);
    }
    await lease.charge({ tool: 'search' });
    await closeSettled(lease);
    assert.deepEqual(
      settled.map(({ paid, sequence }) => [paid, sequence]),
      [
        [true, 1],
        [true, 2],
      ],
    );
    const next = await farebox.lease({ ...optionsFor(spendKey), journal: link });
    await closeSettled(next);
  });

  it('refuse metadata that JSON cannot express, and settle the other calls', async () => {
    const { spendKey } = await leasable();
    const lease = await farebox.lease(optionsFor(spendKey));
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    for (const metadata of [circular, { big: 1n }, () => {}] as unknown as { call: string }[]) {
      assert.throws(() => lease.charge({ tool: 'search', metadata }), TypeError);
    }
    assert.equal(lease.remaining, 1);
    const changed: Record<string, unknown> = { call: 'first' };
    lease.charge({ tool: 'search', metadata: changed as { call: string } });
    changed['call'] = circular;
    lease.charge({ tool: 'search' });
    await closeSettled(lease);
    assert.deepEqual(
      settled.map(({ paid, sequence }) => [paid, sequence]),
      [
        [true, 1],
        [true, 2],
      ],
    );
  });

  it('leave nothing of a call in the journal that was refused because it could not be written', async () => {
    const { spendKey } = await leasable();
    const journal = join(folder, 'failing');
    const lease = await farebox.lease({ ...optionsFor(spendKey), journal });
    await lease.charge({ tool: 'search' });
    const handle = await open(journal);
    const files = Object.getPrototypeOf(handle) as { datasync: () => Promise<void> };
    const usual = Object.getOwnPropertyDescriptor(files, 'datasync') ?? {};
    await handle.close();
    files.datasync = () => Promise.reject(new Error('no space left'));
    try {
      await assert.rejects(async () => lease.charge({ tool: 'search' }), /no space left/);
    } finally {
      Object.defineProperty(files, 'datasync', usual);
    }
    await lease.charge({ tool: 'search' });
    const text = await readFile(journal, 'utf8');
    assert.deepEqual(text.match(/"sequence":\d+/g), ['"sequence":1', '"sequence":3']);
    await closeSettled(lease);
    assert.equal(settled.length, 2);
  });

  for (const [end, code] of [
    ['renew', 'lease_fenced'],
    ['release', 'lease_closed'],
  ] as const) {
    it(`stop deciding when somebody else has asked to ${end} the lease`, async () => {
      const { spendKey } = await leasable();
      const lease = await farebox.lease(optionsFor(spendKey));
      lease.charge({ tool: 'search' });
      await farebox.leases[end]({ leaseId: lease.leaseId });
      await lease.settle();
      await until(() => settled.length === 1);
      const [result] = settled;
      assert.ok(result && !result.paid);
      assert.equal(result.code, code);
      assert.equal(raised(() => lease.charge({ tool: 'search' })).code, 'lease_used_up');
      // It takes a lease of its own.
      await until(() => lease.remaining > 0);
      lease.charge({ tool: 'search' });
      await closeSettled(lease);
      await until(() => settled.length === 2);
      assert.ok(settled[1]?.paid);
    });
  }

  for (const kind of ['cut', 'silent'] as const) {
    it(`close in time while the line to Farebox is ${kind}, and name what is not settled`, async () => {
      const line = await startFaultyLine({
        host: '127.0.0.1',
        port: Number(new URL(api.url).port),
      });
      const behind = new Farebox({
        secretKey: account.developerKey,
        baseUrl: `http://127.0.0.1:${line.port}`,
        timeoutMs: 5_000,
      });
      const { spendKey, budgetId } = await leasable();
      const journal = join(folder, kind);
      const plain = await behind.lease(optionsFor(spendKey));
      const kept = await behind.lease({ ...optionsFor(spendKey), journal });
      line.damage({ kind });
      plain.charge({ tool: 'search', amount: '0.005', metadata: { call: 7 } });
      plain.charge({ tool: 'search' });
      await kept.charge({ tool: 'search' });
      const [closed, again, other] = await Promise.all([
        plain.close({ timeoutMs: 1_500 }),
        plain.close(),
        kept.close({ timeoutMs: 1_500 }),
      ]);
      const { leaseId } = plain;
      assert.deepEqual(closed.unsettled, [
        {
          leaseId,
          sequence: 1,
          tool: 'search',
          amount: 0.005,
          metadata: { call: 7 },
        },
        { leaseId, sequence: 2, tool: 'search', amount: 0.02 },
      ]);
      assert.equal(again, closed);
      assert.equal(other.unsettled.length, 1);
      line.mend();
      const { results } = await farebox.leases.settle({
        leaseId,
        entries: closed.unsettled,
        final: true,
      });
      assert.deepEqual(
        results.map(({ status }) => status),
        [201, 201],
      );
      const next = await farebox.lease({ ...optionsFor(spendKey), journal });
      await until(() => settled.length === 1);
      await closeSettled(next);
      assert.equal((await showBudget(api, account.consumerKey, budgetId)).used, 0.045);
      await line.stop();
    });
  }

  it('are refused with the reason, and nothing is taken', async () => {
    const { consumerKey } = account;
    await assert.rejects(farebox.lease(optionsFor(consumerKey)), { code: 'lease_not_allowed' });
    for (const expiresIn of [4, 86_401]) {
      await assert.rejects(farebox.lease({ ...optionsFor(consumerKey), expiresIn }), {
        name: 'TypeError',
        message: 'Farebox: expiresIn must be an integer from 5 to 86400',
      });
    }
    const { spendKey } = await leasable({ limit: 0 });
    await assert.rejects(farebox.lease(optionsFor(spendKey)), { code: 'spend_limit_reached' });
  });
});

function raised(call: () => unknown): FareboxError {
  try {
    call();
  } catch (error) {
    assert.ok(FareboxError.isInstance(error), String(error));
    return error;
  }
  return assert.fail('nothing was raised');
}
