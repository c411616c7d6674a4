/**
 * Farebox is killed while clients call under leases, and so are clients. No call is refused within a lease, nothing is
 * overspent, each call is charged once, and a lost process costs the consumer nothing.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { Farebox, FareboxError, type Lease, type SettledCall } from '@farebox/client';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { changeBudget, showBudget } from '../support/budget-requests.ts';
import { call } from '../support/http.ts';
import { closeSettled, endLease, makeLeasable, showLease } from '../support/lease-requests.ts';
import {
  startApiProcess,
  startProcesses,
  until,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';

const PRICE = 0.000_1;
const TOOLS = [{ name: 'search', price: PRICE }];
/** The lifetime of a lease whose end the test awaits. */
const SHORT_SECONDS = 15;
/** The lifetime of a lease that is to last, also on a busy machine, until the test has ended it. */
const LONG_SECONDS = 1_800;
const AN_HOUR_MS = 3_600_000;

export interface LeaseFaults {
  /** How long the service is away. */
  readonly awaySeconds: number;
  readonly report: (line: string) => void;
}

export async function runLeaseFaults({ awaySeconds, report }: LeaseFaults): Promise<void> {
  const stack = await startProcesses();
  const folder = await mkdtemp(join(tmpdir(), 'farebox-leases-'));
  let api: ServerProcess = stack.api;
  try {
    api = await outage(stack, awaySeconds, report);
    await Promise.all([
      lostProcess(stack, undefined, report),
      lostProcess(stack, join(folder, 'journal'), report),
      wrongClock(stack, report),
      revocation(stack, report),
      loweredLimit(stack, report),
    ]);
    await proveBooks(stack.env, { processor: false });
  } finally {
    if (api !== stack.api) await api.stop();
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Two clients with leases on one budget call on while every API process is dead. */
async function outage(
  stack: Stack<ServerProcess>,
  awaySeconds: number,
  report: (line: string) => void,
): Promise<ServerProcess> {
  const account = await createAccount(stack.env, 20);
  const { spendKey, budgetId } = await makeLeasable(stack.api, account.consumerKey, { limit: 15 });
  const caller = async () => {
    const settled: SettledCall[] = [];
    const lease = await clientOf(stack, account).lease({
      apiKey: spendKey,
      tools: TOOLS,
      amount: 5,
      expiresIn: awaySeconds + LONG_SECONDS,
      onSettled: (results) => settled.push(...results),
    });
    return { lease, settled, answered: 0 };
  };
  const callers = [await caller(), await caller()];
  const isOver = new AbortController();
  const calling = callers.map(async (each) => {
    while (!isOver.signal.aborted) {
      each.lease.charge({ tool: 'search' });
      each.answered += 1;
      await delay(2);
    }
  });
  const settledSome = (more: number) =>
    until(() => callers.every(({ settled }) => settled.length > more));
  await settledSome(0);
  stack.api.kill('SIGKILL');
  await stack.api.exited;
  const before = callers.map(({ answered }) => answered);
  const countAway = () => callers.map(({ answered }, n) => answered - (before[n] ?? 0));
  const isEnough = () => countAway().every((count) => count > awaySeconds * 20);
  // A refused call throws, which ends the caller and the race.
  await Promise.race([delay(awaySeconds * 1_000), ...calling]);
  await Promise.race([until(isEnough), ...calling]);
  const whileAway = countAway();
  const api = await startApiProcess({ env: { ...stack.env, PORT: new URL(stack.api.url).port } });
  await settledSome(Math.max(...callers.map(({ answered }) => answered)));
  isOver.abort();
  await Promise.all(calling);
  await Promise.all(callers.map(({ lease }) => closeSettled(lease)));
  let total = 0;
  for (const { settled, answered } of callers) {
    await until(() => settled.length === answered);
    assert.ok(settled.every(({ paid }) => paid));
    assert.equal(new Set(settled.map((each) => each.paid && each.id)).size, answered);
    total += answered;
  }
  const { used } = await showBudget(stack.api, account.consumerKey, budgetId);
  assert.equal(Math.round(used / PRICE), total);
  await proveBooks(stack.env, { processor: false });
  report(
    `away for ${awaySeconds} s: ${total} calls, ${whileAway.join(' + ')} meanwhile, 0 refused`,
  );
  return api;
}

/** What it had not settled costs the developer at most the lease, and nothing when there is a journal. */
async function lostProcess(
  stack: Stack,
  journal: string | undefined,
  report: (line: string) => void,
): Promise<void> {
  const account = await createAccount(stack.env, 20);
  const { spendKey } = await makeLeasable(stack.api, account.consumerKey);
  const options = { apiKey: spendKey, tools: TOOLS, amount: 2, expiresIn: LONG_SECONDS };
  const answered = await callUntilKilled(stack, account, { ...options, journal }, 0);
  const leaseId = answered[0]?.split(' ')[0] ?? assert.fail('it made no call');
  const settledBefore = Math.round(
    (await showLease(stack.api, account.consumerKey, leaseId)).settled / PRICE,
  );
  if (journal === undefined) {
    await endLease(stack.database.url, leaseId);
    await until(async () => {
      const { status, released } = await showLease(stack.api, account.consumerKey, leaseId);
      return status === 'expired' && released > 0;
    });
  } else {
    const settled: SettledCall[] = [];
    const onSettled = (results: SettledCall[]) => void settled.push(...results);
    const lease = await clientOf(stack, account).lease({ ...options, journal, onSettled });
    await closeSettled(lease);
    // A settled call whose mark was lost is settled again, and replayed.
    assert.ok(settled.every(({ paid }) => paid));
  }
  const { settled, released, amount } = await showLease(stack.api, account.consumerKey, leaseId);
  const charged = Math.round(settled / PRICE);
  // A settlement may have been on its way when the process was killed, and one call more decided than printed.
  const least = journal === undefined ? settledBefore : answered.length;
  assert.ok(charged >= least && charged <= answered.length + 1, `${charged} of ${answered.length}`);
  assert.equal(Math.round((settled + released) * 1e6), Math.round(amount * 1e6));
  const { body } = await call(stack.api, 'GET', '/v1/balance', { key: account.consumerKey });
  assert.equal(Math.round(((body as { balance: number }).balance + settled) * 1e6), 20e6);
  const lost = Math.max(0, answered.length - charged);
  report(
    `killed ${journal === undefined ? 'without' : 'with'} a journal: ${answered.length} calls, ${lost} lost`,
  );
}

/** Its leases last as long as those of any other process. */
async function wrongClock(stack: Stack, report: (line: string) => void): Promise<void> {
  const counts = await Promise.all(
    [-AN_HOUR_MS, AN_HOUR_MS].map(async (shiftMs) => {
      const account = await createAccount(stack.env, 20);
      const { spendKey } = await makeLeasable(stack.api, account.consumerKey);
      const options = { apiKey: spendKey, tools: TOOLS, amount: 2, expiresIn: LONG_SECONDS };
      return (await callUntilKilled(stack, account, options, shiftMs)).length;
    }),
  );
  report(`clocks wrong by an hour: ${counts.join(' and ')} calls`);
}

/** A revoked key is spent until its lease ends, and no longer: renewals are refused. */
async function revocation(stack: Stack, report: (line: string) => void): Promise<void> {
  const account = await createAccount(stack.env, 20);
  const { spendKey, keyId } = await makeLeasable(stack.api, account.consumerKey);
  const ended = await callUntilRefused(stack, account, spendKey, async () => {
    const path = `/v1/keys/${keyId}/revoke`;
    assert.equal((await call(stack.api, 'POST', path, { key: account.consumerKey })).status, 200);
  });
  assert.equal(ended.code, 'invalid_api_key');
  assert.ok(ended.lastMs <= SHORT_SECONDS * 1_000, String(ended.lastMs));
  report(`a revoked key was spent for ${Math.round(ended.lastMs)} ms more`);
}

async function loweredLimit(stack: Stack, report: (line: string) => void): Promise<void> {
  const account = await createAccount(stack.env, 20);
  const { spendKey, budgetId } = await makeLeasable(stack.api, account.consumerKey, { limit: 10 });
  const ended = await callUntilRefused(stack, account, spendKey, async () => {
    await changeBudget(stack.api, account.consumerKey, budgetId, { limit: 0.01 });
  });
  assert.equal(ended.code, 'spend_limit_reached');
  assert.ok(ended.lastMs <= SHORT_SECONDS * 1_000, String(ended.lastMs));
  report(`a limit was passed for ${Math.round(ended.lastMs)} ms after it was lowered`);
}

/** `lastMs`: how long after the change the last call began that was not refused. */
async function callUntilRefused(
  stack: Stack,
  account: TestAccount,
  apiKey: string,
  change: () => Promise<void>,
): Promise<{ code: string; lastMs: number }> {
  const lease: Lease = await clientOf(stack, account).lease({
    apiKey,
    tools: TOOLS,
    amount: 2,
    expiresIn: SHORT_SECONDS,
  });
  await change();
  const changedAt = performance.now();
  let lastMs = 0;
  try {
    for (;;) {
      const beganMs = performance.now() - changedAt;
      try {
        lease.charge({ tool: 'search' });
        lastMs = beganMs;
      } catch (error) {
        if (!FareboxError.isInstance(error)) throw error;
        // A lease may end before the response to its renewal says why it is refused.
        if (error.code !== 'lease_used_up') return { code: error.code, lastMs };
      }
      await delay(5);
    }
  } finally {
    await lease.close();
  }
}

/** Kills the process between two settlements. Resolves with a line for each answered call. */
async function callUntilKilled(
  stack: Stack,
  account: TestAccount,
  lease: object,
  shiftMs: number,
): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../client/lease-calls.ts')], {
    env: {
      PATH: process.env['PATH'],
      FAREBOX_URL: stack.api.url,
      FAREBOX_SECRET_KEY: account.developerKey,
      CLOCK_SHIFT_MS: String(shiftMs),
      LEASE: JSON.stringify(lease),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  let errors = '';
  let hasExited = false;
  child.on('close', () => {
    hasExited = true;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const chargesOf = async () => {
    const [leaseId = ''] = lines[0]?.split(' ') ?? [];
    return (await showLease(stack.api, account.consumerKey, leaseId)).settled;
  };
  const untilItHas = (condition: () => boolean | Promise<boolean>) =>
    until(() => {
      assert.ok(!hasExited, `the process ended by itself: ${errors}`);
      return condition();
    });
  await untilItHas(async () => lines.length > 0 && (await chargesOf()) > 0);
  const count = lines.length;
  await untilItHas(() => lines.length > count + 20);
  child.kill('SIGKILL');
  await until(() => hasExited);
  return lines;
}

function clientOf(stack: Stack, { developerKey: secretKey }: TestAccount): Farebox {
  return new Farebox({ secretKey, baseUrl: stack.api.url });
}
