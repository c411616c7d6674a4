/** Clients that charge and pay while processes are replaced: none may see a failure. */
import { setTimeout as delay } from 'node:timers/promises';
import { Farebox } from '@farebox/client';
import type { TestAccount } from './accounts.ts';
import { openCheckout, pay } from './payments.ts';
import { until, type Server } from './stack.ts';

export type Load = ReturnType<typeof startLoad>;

const CLIENTS = 8;
/** Some charges are always on their way, and the processes that start get most of the machine. */
const CHARGE_PAUSE_MS = 20;
const PAYMENT_PAUSE_MS = 200;

/** Charges by our client, which retries as it always does, and checkouts that are paid. */
export function startLoad(api: Pick<Server, 'url'>, charger: TestAccount, payer: TestAccount) {
  const farebox = new Farebox({ secretKey: charger.developerKey, baseUrl: api.url });
  const load = {
    isStopped: false,
    charges: 0,
    payments: 0,
    /** Resolves when charges and a payment were made after this. Rejects if the load has ended with an error. */
    goesOn: async () => {
      const [charges, payments] = [load.charges, load.payments];
      const hasGoneOn = until(() => load.charges > charges + 20 && load.payments > payments);
      await Promise.race([hasGoneOn, all.then(() => hasGoneOn)]);
    },
    stop: async () => {
      load.isStopped = true;
      await all;
    },
  };
  const chargeOn = async () => {
    while (!load.isStopped) {
      await farebox.charge({ apiKey: charger.consumerKey, tool: 'search', amount: 0.01 });
      load.charges += 1;
      await delay(CHARGE_PAUSE_MS);
    }
  };
  const payOn = async () => {
    while (!load.isStopped) {
      const opened = await openCheckout(api, payer, 5).catch(undefinedIfCut);
      if (opened && (await pay(opened.sessionUrl))) load.payments += 1;
      await delay(PAYMENT_PAUSE_MS);
    }
  };
  const all = Promise.all([...Array.from({ length: CLIENTS }, chargeOn), payOn()]);
  all.catch(() => {}); // goesOn and stop report the error
  return load;
}

/** `fetch` rejects when a connection is cut. Only our client repeats such requests by itself. */
function undefinedIfCut(error: unknown): undefined {
  if (!(error instanceof TypeError)) throw error;
}
