/** What a lease tells its owner, against a service with scripted answers: a failure there costs no call. */
import assert from 'node:assert/strict';
import { Farebox, type SettledCall } from '@farebox/client';
import { closeSettled } from '../support/lease-requests.ts';
import { until } from '../support/stack.ts';
import { leaseScript } from './lease-script.ts';
import { ScriptedService } from './scripted-service.ts';

describe('client: the owner of a lease', () => {
  let service: ScriptedService;

  beforeEach(async () => {
    service = await ScriptedService.start(leaseScript({}));
  });
  afterEach(() => service.close());

  const open = (onSettled: (results: SettledCall[]) => void | Promise<void>) =>
    new Farebox({ secretKey: 'fare_sk_test_x', baseUrl: service.url }).lease({
      apiKey: 'fare_ck_test_x',
      tools: ['search'],
      amount: 1,
      onSettled,
    });

  for (const [how, fail] of [
    ['throws', () => assert.fail('the log is full')],
    ['rejects', () => Promise.reject(new Error('the log is full'))],
  ] as const) {
    it(`gets a warning, and loses no call, when onSettled ${how}`, async () => {
      const warnings: string[] = [];
      const note = ({ name, message }: Error) => warnings.push(`${name}: ${message}`);
      process.on('warning', note);
      try {
        const told: number[] = [];
        const lease = await open((results) => {
          told.push(results.length);
          return fail();
        });
        lease.charge({ tool: 'search' });
        await lease.settle();
        lease.charge({ tool: 'search' });
        await closeSettled(lease);
        assert.deepEqual(told, [1, 1]);
        await until(() => warnings.length === 2);
        assert.match(warnings[0] ?? '', /^FareboxWarning: onSettled .*the log is full/s);
      } finally {
        process.off('warning', note);
      }
    });
  }

  it('may read every member of each call, without asking first whether it is paid', async () => {
    const told: string[] = [];
    const lease = await open((results) => {
      for (const { sequence, paid, id, receipt, tool, amount, createdAt, code, message } of results)
        told.push(
          `${[sequence, paid, amount].join()} ${[tool, code, message].join()}`,
          `${createdAt} ${receipt} ${id}`,
        );
    });
    lease.charge({ tool: 'search' });
    await closeSettled(lease);
    assert.equal(told[0], '1,true,0.02 search,,');
  });

  it('is waited for by close()', async () => {
    let isTold = false;
    const logging = Promise.withResolvers<void>();
    const lease = await open(async () => {
      await logging.promise;
      isTold = true;
    });
    lease.charge({ tool: 'search' });
    await lease.settle();
    const closing = lease.close({ timeoutMs: 600_000 }).then(() => isTold);
    await until(() => service.seen.filter(({ path }) => path?.endsWith('/settle')).length === 2);
    logging.resolve();
    assert.equal(await closing, true);
  });
});
