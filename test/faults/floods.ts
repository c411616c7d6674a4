/**
 * One developer floods an API process in every possible way; another one charges meanwhile. Measured are
 * the victim's charges: how long they take compared to without the flood, and whether any is refused.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { composeKey } from '../../src/domain/api-keys.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { longestLists, makeBudget } from '../support/budget-requests.ts';
import { bodyOf, charge } from '../support/http.ts';

export interface Flood {
  readonly name: string;
  /** Some requests of the flood, which are sent over and over. */
  readonly requests: readonly FloodRequest[];
}

export interface FloodRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly key?: string;
  readonly body?: unknown;
}

export interface FloodTarget {
  readonly url: string;
}

export interface Measured {
  readonly charges: number;
  readonly refused: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly attack: AttackReport;
}

/** What the flooding thread is told. */
export interface Attack extends FloodOptions {
  readonly url: string;
  readonly requests: readonly FloodRequest[];
}

export interface AttackReport {
  /** Answers to the flood, by status; 0 for connections that broke. */
  readonly answers: Readonly<Record<number, number>>;
  /** The processor time that the flooding thread took, as a part of the time. */
  readonly busyShare: number;
}

export interface FloodOptions {
  readonly connections: number;
  readonly forMs: number;
}

/** The names of all floods. */
export const FLOODS = [
  'new tool names, singly',
  'new tool names, in batches',
  'batches of 1,000',
  'refused batches of 1,000',
  'unknown keys',
  'refunds',
  'statements',
  'readiness',
  'pages of large budgets',
] as const;

/** `chargeId` is a charge of the attacker. `poor` has no balance. */
export function floodsOf(
  attacker: TestAccount,
  poor: TestAccount,
  chargeId: string,
): readonly Flood[] {
  const { consumerKey: apiKey, developerKey: key } = attacker;
  const post = (path: string, body: unknown): FloodRequest => ({ method: 'POST', path, key, body });
  const member = { apiKey, tool: 'search', amount: 0.000001 };
  const batch = (count: number, each: () => object) =>
    post('/v1/charges/batch', { charges: Array.from({ length: count }, each) });
  const month = new Date().toISOString().slice(0, 7);
  return [
    {
      name: 'new tool names, singly',
      requests: some(() => post('/v1/charges', { ...member, tool: randomUUID() }), 20_000),
    },
    {
      name: 'new tool names, in batches',
      requests: some(() => batch(1_000, () => ({ ...member, tool: randomUUID() }))),
    },
    { name: 'batches of 1,000', requests: [batch(1_000, () => member)] },
    {
      name: 'refused batches of 1,000',
      requests: [batch(1_000, () => ({ ...member, apiKey: poor.consumerKey, amount: 1_000 }))],
    },
    {
      name: 'unknown keys',
      requests: some(() => ({
        method: 'GET',
        path: '/v1/balance',
        key: composeKey('fare', 'consumer', randomBytes(64), 'live'),
      })),
    },
    {
      name: 'refunds',
      requests: [post(`/v1/charges/${chargeId}/refund`, { amount: 0.000001 })],
    },
    {
      name: 'statements',
      requests: [{ method: 'GET', path: `/v1/statements/${month}`, key: apiKey }],
    },
    { name: 'readiness', requests: [{ method: 'GET', path: '/readyz' }] },
    {
      name: 'pages of large budgets',
      requests: [{ method: 'GET', path: '/v1/budgets?limit=100', key: apiKey }],
    },
  ];
}

/** For the flood of their pages. */
export async function makeLargeBudgets(
  target: FloodTarget,
  { consumerKey }: TestAccount,
): Promise<void> {
  for (let made = 0; made < 101; made += 1) await makeBudget(target, consumerKey, longestLists());
}

/** Enough that repeated requests have left every cache of the process, or stay new for long. */
const some = (one: () => FloodRequest, length = 200) => Array.from({ length }, one);

/** The victim charges one at a time: alone, or during a flood of the same process or of the one `at` another URL. */
export async function measure(
  { url }: FloodTarget,
  victim: TestAccount,
  { requests = [], at = url }: { requests?: readonly FloodRequest[]; at?: string },
  options: FloodOptions,
): Promise<Measured> {
  const attack = requests.length === 0 ? NO_ATTACK : startAttack({ url: at, requests, ...options });
  const until = performance.now() + options.forMs;
  const tookMs: number[] = [];
  let refused = 0;
  while (performance.now() < until) {
    const sentAt = performance.now();
    const answer = await charge({ url }, victim, { amount: 0.000001 });
    tookMs.push(performance.now() - sentAt);
    if (answer.status === 201) bodyOf(answer, 201, ChargeReply);
    else refused += 1;
  }
  tookMs.sort((a, b) => a - b);
  const percentile = (part: number) => tookMs[Math.floor(tookMs.length * part)] ?? 0;
  return {
    charges: tookMs.length,
    refused,
    p50Ms: percentile(0.5),
    p90Ms: percentile(0.9),
    p99Ms: percentile(0.99),
    attack: await attack,
  };
}

const NO_ATTACK: AttackReport = { answers: {}, busyShare: 0 };

/** In a separate thread, so that the measured charges do not wait for it. */
async function startAttack(attack: Attack): Promise<AttackReport> {
  const worker = new Worker(new URL('./flood-thread.ts', import.meta.url), { workerData: attack });
  const [report] = (await once(worker, 'message')) as [AttackReport];
  return report;
}
