/**
 * One developer floods an API process in every way that it can; another one charges meanwhile. Measured is what
 * the other one notices: how long its charges take beside how long they take alone, and whether any is refused.
 */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { bodyOf, charge } from '../support/http.ts';

export interface Flood {
  readonly name: string;
  /** One request of the flood. */
  readonly send: (server: FloodTarget) => FloodRequest;
}

interface FloodRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly key?: string;
  readonly body?: unknown;
}

export interface FloodTarget {
  readonly url: string;
}

export interface Measured {
  readonly flood: string;
  readonly charges: number;
  readonly refused: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers that the flood itself got, by status. */
  readonly answers: Readonly<Record<number, number>>;
}

export interface FloodOptions {
  readonly connections: number;
  readonly forMs: number;
}

/** `chargeId` is of a charge of the attacker's. `poor` has no balance. */
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
      send: () => post('/v1/charges', { ...member, tool: randomUUID() }),
    },
    {
      name: 'new tool names, in batches',
      send: () => batch(1_000, () => ({ ...member, tool: randomUUID() })),
    },
    { name: 'batches of 1,000', send: () => batch(1_000, () => member) },
    {
      name: 'refused batches of 1,000',
      send: () => batch(1_000, () => ({ ...member, apiKey: poor.consumerKey, amount: 1_000 })),
    },
    {
      name: 'unknown keys',
      send: () => ({ method: 'GET', path: '/v1/balance', key: `fare_ck_live_${randomUUID()}` }),
    },
    {
      name: 'refunds',
      send: () => post(`/v1/charges/${chargeId}/refund`, { amount: 0.000001 }),
    },
    {
      name: 'statements',
      send: () => ({ method: 'GET', path: `/v1/statements/${month}`, key: apiKey }),
    },
    { name: 'readiness', send: () => ({ method: 'GET', path: '/readyz' }) },
  ];
}

/** The victim charges one at a time for as long as the flood lasts; without a flood, alone. */
export async function measure(
  server: FloodTarget,
  victim: TestAccount,
  flood: Flood | undefined,
  { connections, forMs }: FloodOptions,
): Promise<Measured> {
  const until = performance.now() + forMs;
  const answers: Record<number, number> = {};
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const attack = flood
    ? Array.from({ length: connections }, async () => {
        while (performance.now() < until) {
          const status = await sendOnce(server, agent, flood.send(server));
          answers[status] = (answers[status] ?? 0) + 1;
        }
      })
    : [];
  const tookMs: number[] = [];
  let refused = 0;
  while (performance.now() < until) {
    const sentAt = performance.now();
    const answer = await charge(server, victim, { amount: 0.000001 });
    tookMs.push(performance.now() - sentAt);
    if (answer.status === 201) bodyOf(answer, 201, ChargeReply);
    else refused += 1;
  }
  await Promise.all(attack);
  agent.destroy();
  tookMs.sort((a, b) => a - b);
  return {
    flood: flood?.name ?? 'alone',
    charges: tookMs.length,
    refused,
    p50Ms: tookMs[Math.floor(tookMs.length * 0.5)] ?? 0,
    p99Ms: tookMs[Math.floor(tookMs.length * 0.99)] ?? 0,
    answers,
  };
}

/** The status; 0 for a connection that broke. */
function sendOnce(
  server: FloodTarget,
  agent: Agent,
  { method, path, key, body }: FloodRequest,
): Promise<number> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve) => {
    const sent = request(
      server.url + path,
      {
        method,
        agent,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(text === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        },
      },
      (response) => {
        response.resume();
        response.on('close', () => resolve(response.statusCode ?? 0));
      },
    );
    sent.on('error', () => resolve(0));
    sent.end(text);
  });
}
