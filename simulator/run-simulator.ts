/** The payment simulator as a whole, for a process of its own (main.ts) and for that of a test. */
import { once } from 'node:events';
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

export interface SimulatorSettings {
  /** 0: any. */
  readonly port: number;
  /** The file with everything it has confirmed or owes. */
  readonly database: string;
  readonly secretKey: string;
  readonly webhookUrl: string;
  readonly webhookSecret: string;
  /** What the controls require. */
  readonly token: string;
  /** How long a bank debit takes. */
  readonly settleAfterSeconds: number;
  /** How often it looks for what is due. */
  readonly tickMs: number;
}

export interface RunningSimulator {
  readonly port: number;
  readonly url: string;
  /** Immediately: every answered request is committed, and webhooks in flight are sent again after the next start. */
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';

/** Rejects if it cannot listen. */
export async function runSimulator(settings: SimulatorSettings): Promise<RunningSimulator> {
  const store = new Store(settings.database);
  const webhooks = new Webhooks(store, {
    url: settings.webhookUrl,
    secret: settings.webhookSecret,
  });
  const simulation: Simulation = {
    store,
    webhooks,
    rateLimit: new RateLimit(),
    secretKey: settings.secretKey,
    settleAfterSeconds: settings.settleAfterSeconds,
    baseUrl: '',
  };
  const server = createSimulatorServer(simulation, settings.token);
  server.listen(settings.port, HOST);
  await once(server, 'listening').catch((error: unknown) => {
    store.close();
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  simulation.baseUrl = `http://${HOST}:${port}`;
  webhooks.start();
  const ticking = setInterval(() => tick(simulation), settings.tickMs);
  return {
    port,
    url: simulation.baseUrl,
    stop: async () => {
      clearInterval(ticking);
      webhooks.close();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      store.close();
      await closed;
    },
  };
}

function tick(simulation: Simulation): void {
  runDue(simulation, 'checkout.session', expire);
  runDue(simulation, 'payment_intent', settleDueDebit);
  runDue(simulation, 'charge', objectToPayment);
  runDue(simulation, 'refund', settleDueRefund);
  run(simulation, null, () => simulation.store.forgetAnswersBefore(Date.now() - KEPT_MS));
}
