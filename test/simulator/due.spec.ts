/** What becomes due in the simulator: an object that stands in the way stops neither the others nor the process. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { until } from '../support/stack.ts';
import { SimulatorProcess, WebhookReceiver } from './simulator-process.ts';

/** Nothing that becomes due is looked at before the next start. */
const NEVER_MS = 3_600_000;

describe('a simulator with payments that their banks will dispute', () => {
  let receiver: WebhookReceiver;
  let simulator: SimulatorProcess;

  beforeEach(async () => {
    receiver = await WebhookReceiver.listen();
    simulator = await SimulatorProcess.start(receiver.url, undefined, { tickMs: NEVER_MS });
  });
  afterEach(async () => {
    await simulator.remove();
    receiver.close();
  });

  async function pay(): Promise<string> {
    const { stripe } = simulator;
    const { id: customer } = await stripe.customers.create({});
    const card = await stripe.paymentMethods.attach('pm_card_createDispute', { customer });
    const { id, status } = await stripe.paymentIntents.create({
      amount: 2_000,
      currency: 'usd',
      off_session: true,
      confirm: true,
      customer,
      payment_method: card.id,
    });
    assert.equal(status, 'succeeded');
    return id;
  }

  /** Restarts it, with a clock. Resolves when the bank has disputed the last payment, and it still answers. */
  async function disputesAfterRestart(last: string): Promise<Set<unknown>> {
    await simulator.end();
    simulator = await SimulatorProcess.start(receiver.url, simulator);
    return until(async () => {
      const { data } = await simulator.stripe.disputes.list();
      const disputed = new Set<unknown>(data.map((dispute) => dispute.payment_intent));
      return disputed.has(last) && disputed;
    });
  }

  it('disputes none of which nothing is left', async () => {
    const refunded = await pay();
    await simulator.stripe.refunds.create({ payment_intent: refunded });
    const disputed = await pay();
    await simulator.control('POST', 'disputes', { payment_intent: disputed });
    const last = await pay();
    assert.deepEqual(await disputesAfterRestart(last), new Set([disputed, last]));
  });

  it('disputes the others when one of them is damaged', async () => {
    const damaged = await pay();
    const last = await pay();
    const store = new DatabaseSync(join(simulator.directory, 'simulator.sqlite'));
    store.prepare('delete from objects where id = ?').run(damaged);
    store.close();
    assert.deepEqual(await disputesAfterRestart(last), new Set([last]));
  });
});
