/**
 * A tool server that holds money until it is killed: one hold is kept all its life, and calls place, capture,
 * release or forget others. It reports each step on its standard output, before and after the step.
 */
import { Farebox, FareboxError } from '@farebox/client';
import { Random } from '../support/random.ts';
import { EXPIRES_IN_SECONDS, HOLD_MICROS, type Report } from './holding-reports.ts';

const CALLS_AT_ONCE = 3;

const { CONSUMER_KEY: apiKey, SEED, NAME } = process.env;
const random = new Random(Number(SEED));
const farebox = new Farebox({ timeoutMs: 2_000, maxRetries: 1 });

const say = (report: Report) => process.stdout.write(`${JSON.stringify(report)}\n`);

async function hold(name: string): Promise<string> {
  const { id } = await farebox.holds.place({
    apiKey,
    tool: 'held',
    amount: HOLD_MICROS / 1e6,
    expiresIn: EXPIRES_IN_SECONDS,
    idempotencyKey: `${NAME}.${name}`,
  });
  say({ step: 'held', holdId: id });
  return id;
}

async function capture(holdId: string, micros: number, final: boolean): Promise<void> {
  const idempotencyKey = `${NAME}.${holdId}.${micros}`;
  const asked = { holdId, micros, final, key: idempotencyKey };
  say({ step: 'capturing', ...asked });
  const amount = micros / 1e6;
  const { id } = await farebox.holds.capture({ holdId, amount, final, idempotencyKey });
  say({ step: 'captured', ...asked, chargeId: id });
}

async function call(name: string): Promise<void> {
  const id = await hold(name);
  const fate = random.weighted({ capture: 5, parts: 3, release: 2, forget: 1 });
  if (fate === 'parts') await capture(id, 1_000, false);
  if (fate === 'parts' || fate === 'capture') await capture(id, 4_000, true);
  if (fate === 'release') await farebox.holds.release({ holdId: id });
}

async function callForEver(caller: number): Promise<void> {
  for (let n = 0; ; n += 1) await isDone(() => call(`${caller}.${n}`));
}

/** Whether it was done. Refusals and outages are reported. */
async function isDone(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof FareboxError)) throw error;
    say({ step: 'refused', code: error.code });
    return false;
  }
}

while (!(await isDone(() => hold('kept'))));
await Promise.all(Array.from({ length: CALLS_AT_ONCE }, (_, n) => callForEver(n)));
