/**
 * The payment simulator as a process of its own: the part of Stripe's API that Farebox uses, for the embedded
 * start and the tests. Everything it has confirmed or owes is in the file SIMULATOR_DB.
 * Also in the environment: SIMULATOR_PORT (0: any), SIMULATOR_SECRET_KEY (sk_test_...), SIMULATOR_WEBHOOK_URL,
 * SIMULATOR_WEBHOOK_SECRET (whsec_...), SIMULATOR_TOKEN (of the controls), SIMULATOR_SETTLE_SECONDS (how long
 * a bank debit takes; 10), SIMULATOR_TICK_MS (how often it looks for what is due; 1000).
 */
import { runSimulator } from './run-simulator.ts';

const simulator = await runSimulator({
  port: Number(setting('SIMULATOR_PORT')),
  database: setting('SIMULATOR_DB'),
  secretKey: setting('SIMULATOR_SECRET_KEY'),
  webhookUrl: setting('SIMULATOR_WEBHOOK_URL'),
  webhookSecret: setting('SIMULATOR_WEBHOOK_SECRET'),
  token: setting('SIMULATOR_TOKEN'),
  settleAfterSeconds: Number(setting('SIMULATOR_SETTLE_SECONDS', '10')),
  tickMs: Number(setting('SIMULATOR_TICK_MS', '1000')),
}).catch((error: unknown) => fail((error as Error).message));

process.once('SIGTERM', () => void stop());
process.once('SIGINT', () => void stop());
process.once('disconnect', () => void stop());
process.stdout.write(`simulator listening on ${simulator.url}\n`);
process.send?.({ ready: true, port: simulator.port });

async function stop(): Promise<void> {
  await simulator.stop();
  process.exit(0);
}

function setting(name: string, fallback?: string): string {
  return process.env[name] || fallback || fail(`${name} is not set`);
}

function fail(problem: string): never {
  process.stderr.write(`simulator: ${problem}\n`);
  process.exit(1);
}
