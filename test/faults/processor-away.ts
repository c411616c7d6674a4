/**
 * `bin/farebox exec node test/faults/processor-away.ts --minutes 60`: the payment processor drops every call for
 * so long, in real time. A payment that was made just before, one from a saved card and a checkout that was to
 * be opened end right by themselves, soon after it is back, and each is credited once.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { auditProcessor } from '../../src/stripe/compare-top-ups.ts';
import { auditLedger } from '../../src/store/audit/ledger-checks.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { until } from '../support/stack.ts';
import type { TopUpProgress } from '../../workflows/messages.ts';
import { openDesk, type TopUpDesk } from '../support/top-up-desk.ts';
import { inRealTime } from './real-time.ts';

/** The longest pause between attempts, and the attempts themselves. */
const NOTICED_MS_MAX = 700_000;
const MANY = 1_000_000;

const print = (text: string) => process.stdout.write(`${text}\n`);

async function run(desk: TopUpDesk, minutes: number): Promise<void> {
  await desk.startWorker();
  const [payer, owner, visitor] = [
    await desk.newConsumer(),
    await desk.newConsumer(),
    await desk.newConsumer(),
  ];
  const paid = await desk.checkout(payer, 25);
  await desk.control('webhooks', { mode: 'drop' });
  await desk.control('faults', { path: '/v1/', kind: 'drop', times: MANY });
  await desk.pay(paid.sessionUrl);
  const direct = await request(desk.request(owner, 'direct', 20));
  const checkout = await request(desk.request(visitor, 'checkout', 30));
  for (let minute = 1; minute <= minutes; minute += 1) {
    await delay(60_000);
    const states = await Promise.all([paid, direct, checkout].map((topUp) => stateOf(desk, topUp)));
    print(`after ${minute} min: ${states.join('; ')}`);
  }
  await desk.forgetFaults();
  const backAtMs = performance.now();
  const isBack = (what: string) =>
    print(`${what} ${((performance.now() - backAtMs) / 1_000).toFixed(1)} s after it was back`);
  await Promise.all([
    completed(desk, paid).then(() => isBack('the paid checkout was credited')),
    completed(desk, direct).then(() => isBack('the saved card was charged')),
    until(async () => (await desk.topUp(checkout.id)).sessionUrl, {
      timeoutMs: NOTICED_MS_MAX,
    }).then((url) => (isBack('the checkout was opened'), desk.pay(url))),
  ]);
  await completed(desk, checkout);
  for (const [consumer, dollars] of [
    [payer, 25],
    [owner, 20],
    [visitor, 30],
  ] as const) {
    assert.equal((await desk.books(consumer)).credited, dollars * 1e6);
  }
  assert.deepEqual(await auditLedger(desk.database), []);
  assert.deepEqual(await auditProcessor(desk.database, desk.stripe), []);
  print('each was credited once, and the books are whole');
}

async function request(asked: ReturnType<TopUpDesk['request']>): Promise<TopUp> {
  const result = await asked;
  assert.ok('topUp' in result);
  return result.topUp;
}

async function stateOf(desk: TopUpDesk, topUp: TopUp): Promise<string> {
  const { status, waitingFor, stuck } = await desk
    .workflow(topUp.id)
    .query<TopUpProgress>('status');
  return `${status}, waits for ${waitingFor}${stuck ? `, stuck in ${stuck.step}` : ''}`;
}

const completed = (desk: TopUpDesk, { id }: TopUp) =>
  until(async () => (await desk.topUp(id)).status === 'completed', { timeoutMs: NOTICED_MS_MAX });

await inRealTime(openDesk, run, 60);
