/** A scripted service that has leases. Each kind of request is answered by its own part of the script. */
import { Farebox, type FareboxOptions, type LeaseOptions, type SettledCall } from '@farebox/client';
import { answer, CHARGE, ScriptedService, type Step } from './scripted-service.ts';

export interface SentEntry {
  readonly sequence: number;
  readonly tool: string;
  readonly amount: number;
}

export interface Settlement {
  readonly entries: readonly SentEntry[];
  readonly fence?: number;
  readonly final?: boolean;
}

type LeaseAsked = { readonly tools: readonly (string | { name: string })[]; amount: number };

/** `n` counts the requests of the kind, from 0. By default, everything is accepted. */
export interface LeaseScript {
  readonly take?: (n: number) => Step;
  readonly settle?: (body: Settlement, n: number) => Step;
  readonly renew?: (body: { fence: number }, n: number) => Step;
}

export const EXPIRES_IN = 300;

/** Services and clients of the suite that calls it. They are ended after each test, and so are leases that pass `ending`. */
export function leasesOfSuite(settings: FareboxOptions = {}) {
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return {
    start: async (script: LeaseScript) => {
      const service = await ScriptedService.start(leaseScript(script));
      ends.push(() => service.close());
      const own = { secretKey: 'fare_sk_test_x', baseUrl: service.url, maxRetries: 0 };
      return { service, farebox: new Farebox({ ...own, ...settings }) };
    },
    ending: <T extends { close(options: object): Promise<unknown> }>(lease: T): T => {
      ends.push(() => lease.close({ timeoutMs: 0 }));
      return lease;
    },
  };
}

/** The options of a lease, and the calls that were settled in the current test. */
export function settledOfSuite() {
  const settled: SettledCall[] = [];
  beforeEach(() => {
    settled.length = 0;
  });
  const options: LeaseOptions & { journal?: undefined } = {
    apiKey: 'fare_ck_test_x',
    tools: ['search'],
    amount: 1,
    onSettled: (results) => settled.push(...results),
  };
  const sequencesPaid = () => settled.map(({ sequence, paid }) => [sequence, paid]);
  return { settled, options, sequencesPaid };
}

export function leaseScript({ take, settle, renew }: LeaseScript): Step {
  const counts = { take: 0, settle: 0, renew: 0 };
  return (response, request) => {
    const { path = '', body } = request;
    const step = path.endsWith('/settle')
      ? (settle?.(body as Settlement, counts.settle++) ?? settledAll)
      : path.endsWith('/renew')
        ? (renew?.(body as { fence: number }, counts.renew++) ?? renewed())
        : path.endsWith('/release')
          ? answer(200, {})
          : (take?.(counts.take++) ?? taken());
    step(response, request);
  };
}

/** $0.02 a call. */
export function taken(facts: object = {}): Step {
  return (response, request) => {
    const { tools, amount } = request.body as LeaseAsked;
    const priced = tools.map((tool) => ({ name: nameOf(tool), price: 0.02 }));
    const lease = {
      id: 'lse_1',
      fence: 1,
      tools: priced,
      remaining: amount,
      expiresIn: EXPIRES_IN,
    };
    answer(201, { ...lease, ...facts })(response, request);
  };
}

export function renewed(facts: object = {}): Step {
  const tools = [{ name: 'search', price: 0.02 }];
  return answer(200, { id: 'lse_1', fence: 2, tools, expiresIn: EXPIRES_IN, ...facts });
}

export const settledAll: Step = (response, request) => {
  const { entries } = request.body as Settlement;
  const results = entries.map((entry) => ({ ...CHARGE, ...entry, status: 201 }));
  answer(200, { results, lease: {} })(response, request);
};

function nameOf(tool: string | { name: string }): string {
  return typeof tool === 'string' ? tool : tool.name;
}
