/** The payment simulator of a stack, with its own port, secrets and file. */
import { join } from 'node:path';
import { given, unique } from './given.ts';
import { noteSecretsOf } from './leaks.ts';
import { choosePort } from './ports.ts';

export interface Simulator {
  readonly url: string;
  /** Farebox's settings for it. */
  readonly env: Readonly<
    Record<'STRIPE_API_BASE' | 'STRIPE_SECRET_KEY' | 'STRIPE_WEBHOOK_SECRET', string>
  >;
  /** The file with all of its state. */
  readonly database: string;
  /** The token that its controls require. */
  readonly token: string;
  stop(): Promise<void>;
}

export interface SimulatorOptions {
  /** The api's future port, where its webhooks go. */
  readonly apiPort?: number;
  /** Continues with the data of this one. */
  readonly earlier?: Simulator;
}

/** Bank debits are settled by the tests, never by the clock. */
export const SETTLE_SECONDS = 86_400;

/** In this process, as startApi. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { port, webhookUrl, ...chosen } = await chooseSimulator(options);
  const { url, env, database, token } = chosen;
  noteSecretsOf(env);
  const { runSimulator } = await import('../../simulator/run-simulator.ts');
  const running = await runSimulator({
    port,
    database,
    token,
    secretKey: env.STRIPE_SECRET_KEY,
    webhookUrl,
    webhookSecret: env.STRIPE_WEBHOOK_SECRET,
    settleAfterSeconds: SETTLE_SECONDS,
    tickMs: 1_000,
  });
  let stopped: Promise<void> | undefined;
  return { url, env, database, token, stop: () => (stopped ??= running.stop()) };
}

/** What a new simulator is started with, in this process or in one of its own. */
export async function chooseSimulator({ apiPort = 9, earlier }: SimulatorOptions) {
  const port = earlier ? Number(new URL(earlier.url).port) : await choosePort();
  const url = `http://127.0.0.1:${port}`;
  return {
    port,
    url,
    database: earlier?.database ?? join(given('TEST_DATA_FOLDER'), `simulator-${unique()}.db`),
    env: earlier?.env ?? {
      STRIPE_API_BASE: url,
      STRIPE_SECRET_KEY: `sk_test_${unique()}`,
      STRIPE_WEBHOOK_SECRET: `whsec_${unique()}`,
    },
    token: earlier?.token ?? unique(),
    webhookUrl: `http://127.0.0.1:${apiPort}/webhooks/stripe`,
  };
}
