/**
 * The payment simulator as a process of its own: the part of Stripe's API that Farebox uses, for the embedded
 * start and the tests. Everything it has confirmed or owes is in the file SIMULATOR_DB.
 * Also in the environment: SIMULATOR_PORT (0: any), SIMULATOR_SECRET_KEY (sk_test_...), SIMULATOR_WEBHOOK_URL,
 * SIMULATOR_WEBHOOK_SECRET (whsec_...), SIMULATOR_TOKEN (of the controls), SIMULATOR_SETTLE_SECONDS (how long
 * a bank debit takes; 10), SIMULATOR_TICK_MS (how often it looks for what is due; 1000).
 */
import type { AddressInfo } from 'node:net';
import { settleDueDebit } from './hosted-page/checkout-payment.ts';
import { objectToPayment } from './resources/banks.ts';
import { expire } from './resources/checkout-sessions.ts';
import { settleDueRefund } from './resources/refunds.ts';
import { KEPT_MS } from './http/idempotency.ts';
import { RateLimit } from './http/rate-limit.ts';
import { createSimulatorServer } from './http/server.ts';
import { run, runDue, type Simulation } from './simulation.ts';
import { Store } from './store.ts';
import { Webhooks } from './webhooks.ts';

const HOST = '127.0.0.1';

const store = new Store(setting('SIMULATOR_DB'));
const webhooks = new Webhooks(store, {
  url: setting('SIMULATOR_WEBHOOK_URL'),
  secret: setting('SIMULATOR_WEBHOOK_SECRET'),
});
const simulation: Simulation = {
  store,
  webhooks,
  rateLimit: new RateLimit(),
  secretKey: setting('SIMULATOR_SECRET_KEY'),
  settleAfterSeconds: Number(setting('SIMULATOR_SETTLE_SECONDS', '10')),
  baseUrl: '',
};

process.once('SIGTERM', stop);
process.once('SIGINT', stop);
process.once('disconnect', stop);

const server = createSimulatorServer(simulation, setting('SIMULATOR_TOKEN'));
server.on('error', (error) => {
  process.stderr.write(`simulator: ${error.message}\n`);
  process.exit(1);
});
server.listen(Number(setting('SIMULATOR_PORT')), HOST, () => {
  const { port } = server.address() as AddressInfo;
  simulation.baseUrl = `http://${HOST}:${port}`;
  webhooks.start();
  setInterval(tick, Number(setting('SIMULATOR_TICK_MS', '1000')));
  process.stdout.write(`simulator listening on ${simulation.baseUrl}\n`);
  process.send?.({ ready: true, port });
});

function tick(): void {
  runDue(simulation, 'checkout.session', expire);
  runDue(simulation, 'payment_intent', settleDueDebit);
  runDue(simulation, 'charge', objectToPayment);
  runDue(simulation, 'refund', settleDueRefund);
  run(simulation, null, () => store.forgetAnswersBefore(Date.now() - KEPT_MS));
}

/** Immediately: every answered request is committed, and webhooks in flight are sent again after the next start. */
function stop(): void {
  webhooks.close();
  store.close();
  process.exit(0);
}

function setting(name: string, fallback?: string): string {
  const value = process.env[name] || fallback;
  if (!value) {
    process.stderr.write(`simulator: ${name} is not set\n`);
    process.exit(1);
  }
  return value;
}
