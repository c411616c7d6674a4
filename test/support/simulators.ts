/** The payment simulator of a stack, with its own port, secrets and file: in the process of the test, or in its own. */
import { join } from 'node:path';
import { noteSecretsOf } from './leaks.ts';
import { choosePort } from './ports.ts';
import { given, startOurs, unique, type Server, type ServerProcess } from './stack.ts';

const MAIN = join(import.meta.dirname, '../../simulator/main.ts');
/** Bank debits are settled by the tests, never by the clock. */
const SETTLE_SECONDS = 86_400;

export interface Simulator extends Pick<Server, 'url' | 'stop'> {
  /** Farebox's settings for it. */
  readonly env: Readonly<
    Record<'STRIPE_API_BASE' | 'STRIPE_SECRET_KEY' | 'STRIPE_WEBHOOK_SECRET', string>
  >;
  /** The file with all of its state. */
  readonly database: string;
  /** The token that its controls require. */
  readonly token: string;
}

interface SimulatorOptions {
  /** The api's future port, where its webhooks go. */
  readonly apiPort?: number;
  /** Continues with the data of this one. */
  readonly earlier?: Simulator;
}

/** In this process, as startApi. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { database, ...settings } = await simulatorSettings(options);
  const { env, token } = settings;
  noteSecretsOf(env);
  const { runSimulator } = await import('../../simulator/run-simulator.ts');
  const running = await runSimulator({
    database,
    token,
    port: settings.port,
    secretKey: env.STRIPE_SECRET_KEY,
    webhookUrl: settings.webhookUrl,
    webhookSecret: env.STRIPE_WEBHOOK_SECRET,
    settleAfterSeconds: SETTLE_SECONDS,
    tickMs: 1_000,
  });
  let stopped: Promise<void> | undefined;
  return { url: running.url, env, database, token, stop: () => (stopped ??= running.stop()) };
}

/** The same, in a process of its own, which a test may kill. */
export async function startSimulatorProcess(
  options: SimulatorOptions = {},
): Promise<Simulator & ServerProcess> {
  const { port, database, env, token, webhookUrl } = await simulatorSettings(options);
  const child = await startOurs('simulator', [MAIN], {
    SIMULATOR_PORT: String(port),
    SIMULATOR_DB: database,
    SIMULATOR_SECRET_KEY: env.STRIPE_SECRET_KEY,
    SIMULATOR_WEBHOOK_URL: webhookUrl,
    SIMULATOR_WEBHOOK_SECRET: env.STRIPE_WEBHOOK_SECRET,
    SIMULATOR_TOKEN: token,
    SIMULATOR_SETTLE_SECONDS: String(SETTLE_SECONDS),
  });
  return { ...child, url: env.STRIPE_API_BASE, env, database, token };
}

async function simulatorSettings({ apiPort = 9, earlier }: SimulatorOptions) {
  const port = earlier ? Number(new URL(earlier.url).port) : await choosePort();
  return {
    port,
    database: earlier?.database ?? join(given('TEST_DATA_FOLDER'), `simulator-${unique()}.db`),
    env: earlier?.env ?? {
      STRIPE_API_BASE: `http://127.0.0.1:${port}`,
      STRIPE_SECRET_KEY: `sk_test_${unique()}`,
      STRIPE_WEBHOOK_SECRET: `whsec_${unique()}`,
    },
    token: earlier?.token ?? unique(),
    webhookUrl: `http://127.0.0.1:${apiPort}/webhooks/stripe`,
  };
}
