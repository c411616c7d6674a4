/**
 * `bin/farebox exec node test/faults/processor-away.ts --minutes 60`: the payment processor drops every call for
 * that long, in real time. A payment made just before, one from a saved card and a checkout about to
 * open end correctly by themselves, soon after it is back, and each is credited once.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { examineProcessor } from '../../src/stripe/examine-processor.ts';
import { examineLedger } from '../../src/store/doctor/ledger-checks.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { until } from '../support/stack.ts';
import type { TopUpProgress } from '../../workflows/messages.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';
import { inRealTime } from './real-time.ts';

/** The longest pause between attempts, and the attempts themselves. */
const NOTICED_MS_MAX = 700_000;
const MANY = 1_000_000;

const print = (text: string) => process.stdout.write(`${text}\n`);

async function run(harness: TopUpHarness, minutes: number): Promise<void> {
  await harness.startWorker();
  const [payer, owner, visitor] = [
    await harness.newConsumer(),
    await harness.newConsumer(),
    await harness.newConsumer(),
  ];
  const paid = await harness.checkout(payer, 25);
  await harness.control('webhooks', { mode: 'drop' });
  await harness.control('faults', { path: '/v1/', kind: 'drop', times: MANY });
  await harness.pay(paid.sessionUrl);
  const direct = await request(harness.request(owner, 'direct', 20));
  const checkout = await request(harness.request(visitor, 'checkout', 30));
  for (let minute = 1; minute <= minutes; minute += 1) {
    await delay(60_000);
    const states = await Promise.all(
      [paid, direct, checkout].map((topUp) => stateOf(harness, topUp)),
    );
    print(`after ${minute} min: ${states.join('; ')}`);
  }
  await harness.forgetFaults();
  const backAtMs = performance.now();
  const isBack = (what: string) =>
    print(`${what} ${((performance.now() - backAtMs) / 1_000).toFixed(1)} s after it was back`);
  await Promise.all([
    completed(harness, paid).then(() => isBack('the paid checkout was credited')),
    completed(harness, direct).then(() => isBack('the saved card was charged')),
    until(async () => (await harness.topUp(checkout.id)).sessionUrl, {
      timeoutMs: NOTICED_MS_MAX,
    }).then((url) => (isBack('the checkout was opened'), harness.pay(url))),
  ]);
  await completed(harness, checkout);
  for (const [consumer, dollars] of [
    [payer, 25],
    [owner, 20],
    [visitor, 30],
  ] as const) {
    assert.equal((await harness.books(consumer)).credited, dollars * 1e6);
  }
  assert.deepEqual(await examineLedger(harness.database), []);
  assert.deepEqual(await examineProcessor(harness.database, harness.stripe), []);
  print('each was credited once, and the books are whole');
}

async function request(asked: ReturnType<TopUpHarness['request']>): Promise<TopUp> {
  const result = await asked;
  assert.ok('topUp' in result);
  return result.topUp;
}

async function stateOf(harness: TopUpHarness, topUp: TopUp): Promise<string> {
  const { status, waitingFor, stuck } = await harness
    .workflow(topUp.id)
    .query<TopUpProgress>('status');
  return `${status}, waits for ${waitingFor}${stuck ? `, stuck in ${stuck.step}` : ''}`;
}

const completed = (harness: TopUpHarness, { id }: TopUp) =>
  until(async () => (await harness.topUp(id)).status === 'completed', {
    timeoutMs: NOTICED_MS_MAX,
  });

await inRealTime(openTopUpHarness, run, 60);
