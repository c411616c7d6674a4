/** The journal of a lease: a confirmed call is settled, even after an earlier process or the disk left half a line in it. */
import assert from 'node:assert/strict';
import { copyFile, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { closeSettled } from '../support/lease-requests.ts';
import { until } from '../support/stack.ts';
import { leasesOfSuite, settledAll, settledOfSuite, taken } from './lease-script.ts';
import { refusal } from './scripted-service.ts';

describe('client: the journal of a lease', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-journals-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const { start, ending } = leasesOfSuite();
  const { settled, options, sequencesPaid } = settledOfSuite();

  for (const [status, code] of [
    [401, 'invalid_secret_key'],
    [403, 'forbidden'],
  ] as const) {
    it(`keep the journal of an earlier process that ${code} keeps from being settled`, async () => {
      const { farebox } = await start({
        settle: (_, n) => (n === 0 ? refusal(status, code) : settledAll),
      });
      const journal = join(folder, code);
      const entry = { sequence: 1, tool: 'search', micros: 20_000 };
      const text = `${JSON.stringify(['lse_0', entry])}\n`;
      await writeFile(journal, text);
      await assert.rejects(farebox.lease({ ...options, journal }), { code });
      assert.equal(await readFile(journal, 'utf8'), text);
      const lease = ending(await farebox.lease({ ...options, journal }));
      await until(() => settled.length === 1);
      assert.deepEqual(sequencesPaid(), [[1, true]]);
      await lease.close();
    });
  }

  it('start though the journal has calls of a lease that the service does not know, and keep these', async () => {
    let isKnown = false;
    const { farebox } = await start({
      settle: (body) =>
        isKnown || body.fence !== undefined ? settledAll : refusal(404, 'lease_not_found'),
    });
    const journal = join(folder, 'unknown');
    const entries = [1, 2].map((sequence) => ({ sequence, tool: 'search', micros: 20_000 }));
    const text = entries.map((entry) => `${JSON.stringify(['lse_0', entry])}\n`).join('');
    await writeFile(journal, text);
    const lease = await farebox.lease({ ...options, journal });
    await lease.charge({ tool: 'search' });
    await closeSettled(lease);
    assert.deepEqual(
      settled.map((call) => [call.leaseId, call.sequence, !call.paid && call.code]),
      [
        ['lse_0', 1, 'lease_not_found'],
        ['lse_0', 2, 'lease_not_found'],
        ['lse_1', 1, false],
      ],
    );
    settled.length = 0;
    isKnown = true;
    const next = await farebox.lease({ ...options, journal });
    assert.deepEqual(sequencesPaid(), [
      [1, true],
      [2, true],
    ]);
    assert.equal(await readFile(journal, 'utf8'), '');
    await next.close();
  });

  it('keep a call in a journal with a half-written line where the next process finds it', async () => {
    let hasCrashed = false;
    const { farebox } = await start({
      settle: ({ fence }) => {
        if (hasCrashed) return settledAll;
        return fence === undefined
          ? refusal(404, 'lease_not_found')
          : refusal(503, 'service_unavailable');
      },
    });
    const journal = join(folder, 'half-written');
    const entry = { sequence: 1, tool: 'search', micros: 20_000 };
    // The call of an unknown lease stays in the file.
    await writeFile(journal, `${JSON.stringify(['lse_0', entry])}\n["lse_0",{"sequence":2,"to`);
    const lease = await farebox.lease({ ...options, journal });
    await lease.charge({ tool: 'search' });
    const left = join(folder, 'left-by-a-crash');
    await copyFile(journal, left);
    hasCrashed = true;
    await closeSettled(lease);
    settled.length = 0;
    const next = await farebox.lease({ ...options, journal: left });
    assert.deepEqual(
      settled.map(({ leaseId, sequence, paid }) => [leaseId, sequence, paid]),
      [
        ['lse_0', 1, true],
        ['lse_1', 1, true],
      ],
    );
    await next.close();
  });

  it('write whole lines after leftovers of an earlier process, on a slow disk that fails once', async () => {
    const { farebox } = await start({});
    const journal = join(folder, 'slow');
    const line = JSON.stringify(['lse_0', { sequence: 1, tool: 'search', micros: 20_000 }]);
    await writeFile(journal, `${line}\n${line.slice(0, 20)}`);
    let isFull = false;
    const mend = await damageDisk(journal, () => isFull);
    try {
      const lease = ending(await farebox.lease({ ...options, journal }));
      isFull = true;
      await assert.rejects(lease.charge({ tool: 'search' }), /no space left/);
      isFull = false;
      await lease.charge({ tool: 'search' });
      const lines = (await readFile(journal, 'utf8')).trimEnd().split('\n');
      assert.deepEqual(
        lines.map((text) => (JSON.parse(text) as [string])[0]),
        ['lse_1'],
      );
      await lease.close();
    } finally {
      mend();
    }
  });

  it('keep the journal small while calls are always unsettled', async () => {
    const { farebox } = await start({ take: () => taken({ remaining: 1_000 }) });
    const journal = join(folder, 'steady');
    const lease = ending(await farebox.lease({ ...options, journal }));
    const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [n, 'x'.repeat(500)]));
    const decide = (count: number) =>
      Promise.all(Array.from({ length: count }, () => lease.charge({ tool: 'search', metadata })));
    await decide(20);
    for (let n = 1; n <= 40; n += 1) {
      const settling = lease.settle();
      await decide(20);
      await settling;
      await until(() => settled.length >= n * 20);
    }
    const text = await readFile(journal, 'utf8');
    assert.ok(text.length < 2_000_000, String(text.length));
    const last = JSON.stringify([
      'lse_1',
      { sequence: 820, tool: 'search', micros: 20_000, metadata },
    ]);
    assert.ok(text.includes(last));
    await lease.close();
    assert.equal(settled.length, 820);
  });

  it('reject a call that is refused, when there is a journal', async () => {
    const { farebox } = await start({});
    const lease = ending(await farebox.lease({ ...options, journal: join(folder, 'rejects') }));
    const refused = lease.charge({ tool: 'other' });
    await assert.rejects(refused, { code: 'unknown_tool' });
    await lease.close();
  });
});

/** Each sync takes a while, or fails. Returns how to end that. */
async function damageDisk(path: string, isFull: () => boolean) {
  const handle = await open(path);
  const files = Object.getPrototypeOf(handle) as { datasync: () => Promise<void> };
  const usual = Object.getOwnPropertyDescriptor(files, 'datasync') ?? {};
  await handle.close();
  files.datasync = async () => {
    if (isFull()) throw new Error('no space left');
    await delay(100);
  };
  return () => Object.defineProperty(files, 'datasync', usual);
}
