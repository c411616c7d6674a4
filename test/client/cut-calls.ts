/**
 * Paid calls through a proxy that cuts connections at random. Each call has a price of its own in micro-dollars, so
 * that a charge tells its call.
 */
import assert from 'node:assert/strict';
import { Farebox, usd, type OnUnavailable } from '@farebox/client';
import { paidRoute } from '@farebox/client/fetch';
import { paidTool } from '@farebox/client/mcp';
import { wireId } from '../../src/domain/ids.ts';
import type { TestAccount } from '../support/accounts.ts';
import type { TestApi } from '../support/api.ts';
import type { Random } from '../support/random.ts';
import { CuttingProxy, type Cut } from './cutting-proxy.ts';

const AT_ONCE = 32;
/** A cut is noticed at once, so that only a cut, and no slow machine, decides about a call. */
const TIMEOUT_MS = 30_000;
/** Cuts a tenth of the chunks that pass the proxy: about a third of all calls meet a cut. */
const CUTS = { none: 27, before: 1, within: 1, after: 1 };
/** What a handler does: it answers, or it fails in one of two ways. */
const DEEDS = { answers: 6, settles: 2, refuses: 1, throws: 1 };

/** What its caller was told about a call; `paid` has the charge's id. */
type Told = 'free' | 'failed' | 'not charged' | 'unknown' | { readonly paid: string };

interface MadeCall {
  readonly micros: number;
  readonly deed: keyof typeof DEEDS;
  readonly onUnavailable: OnUnavailable;
  readonly told: Told;
}

/** How many calls came to what. */
export type Tally = Record<'paid' | 'free' | 'failed' | 'not charged' | 'unknown', number>;

/** Makes the calls, then holds what their callers were told against what is on record. Throws where it differs. */
export async function makeCutCalls(
  api: TestApi,
  account: TestAccount,
  { calls, random, atOnce = AT_ONCE }: { calls: number; random: Random; atOnce?: number },
): Promise<{ tally: Tally; cuts: number; leftToExpire: number }> {
  const fate = (): Cut | undefined => {
    const drawn = random.weighted(CUTS);
    return drawn === 'none' ? undefined : drawn;
  };
  await using proxy = await CuttingProxy.start(api.url, fate);
  const farebox = new Farebox({
    secretKey: account.developerKey,
    baseUrl: proxy.url,
    maxRetries: 1,
    timeoutMs: TIMEOUT_MS,
  });
  const made: MadeCall[] = [];
  let started = 0;
  const callers = Array.from({ length: atOnce }, async () => {
    while (started < calls) {
      started += 1;
      const micros = started;
      const deed = random.weighted(DEEDS);
      const onUnavailable = random.weighted({ fail: 1, run_unpaid: 1 });
      const call = random.weighted({ tool: 1, route: 1 }) === 'tool' ? callTool : callRoute;
      const told = await call(farebox, paidOptions(micros, deed, onUnavailable), account, deed);
      made.push({ micros, deed, onUnavailable, told });
    }
  });
  await Promise.all(callers);
  await compare(api, made);
  const { rows } = await api.sql.query<{ count: number }>(
    'select count(*)::int from farebox.holds where state = 0',
  );
  return { tally: tallyOf(made), cuts: proxy.cuts, leftToExpire: rows[0]?.count ?? 0 };
}

function paidOptions(micros: number, deed: MadeCall['deed'], onUnavailable: OnUnavailable) {
  const price = usd('0.000001').times(micros);
  const common = { tool: 'cut', onUnavailable, timeoutMs: TIMEOUT_MS };
  if (deed !== 'settles') return { ...common, price };
  return { ...common, max: price.times(2), settle: () => price };
}

type Options = ReturnType<typeof paidOptions>;

async function callTool(
  farebox: Farebox,
  options: Options,
  { consumerKey }: TestAccount,
  deed: MadeCall['deed'],
): Promise<Told> {
  const handler = (_context: object) => {
    if (deed === 'throws') throw new Error('broken');
    const result: Record<string, unknown> = { content: [], isError: deed === 'refuses' };
    return result;
  };
  const context = { requestInfo: { headers: { 'x-service-key': consumerKey } } };
  const result = await paidTool(farebox, options, handler)(context).catch(() => undefined);
  const meta = result?.['_meta'] as
    | { 'farebox/charge'?: { id: string }; 'farebox/error'?: { outcome: string } }
    | undefined;
  if (meta?.['farebox/charge']) return { paid: meta['farebox/charge'].id };
  if (meta?.['farebox/error']) return outcomeOf(meta['farebox/error']);
  return result?.['isError'] === false ? 'free' : 'failed';
}

async function callRoute(
  farebox: Farebox,
  options: Options,
  { consumerKey }: TestAccount,
  deed: MadeCall['deed'],
): Promise<Told> {
  const route = paidRoute(farebox, options, () => {
    if (deed === 'throws') throw new Error('broken');
    return deed === 'refuses' ? new Response('no', { status: 422 }) : new Response('yes');
  });
  const headers = { 'x-service-key': consumerKey };
  const response = await route(new Request('http://site/', { headers })).catch(() => undefined);
  if (!response || response.status === 422) return 'failed';
  const id = response.headers.get('x-charge-id');
  if (id !== null) return { paid: id };
  if (response.ok) return 'free';
  return outcomeOf(((await response.json()) as { error: { outcome: string } }).error);
}

function outcomeOf({ outcome }: { readonly outcome: string }): Told {
  return outcome === 'unknown' ? 'unknown' : 'not charged';
}

/** No call is paid twice, none that failed is paid, none is free unless it may be. */
async function compare(api: TestApi, made: readonly MadeCall[]): Promise<void> {
  const { rows } = await api.sql.query<{ id: string; micros: number }>(
    'select id, amount_micros::int as micros from farebox.charges',
  );
  const charges = new Map(rows.map(({ id, micros }) => [micros, wireId('charge', id)]));
  assert.equal(charges.size, rows.length, 'a call was paid twice');
  for (const { micros, deed, onUnavailable, told } of made) {
    const charge = charges.get(micros);
    const call = JSON.stringify({ micros, deed, onUnavailable, told, charge });
    const hasFailed = deed === 'throws' || deed === 'refuses';
    if (typeof told === 'object') assert.equal(charge, told.paid, call);
    if (told === 'failed' || told === 'not charged' || hasFailed)
      assert.equal(charge, undefined, call);
    if (told === 'free') assert.equal(onUnavailable, 'run_unpaid', call);
    if (told === 'failed') assert.ok(hasFailed, call);
  }
}

function tallyOf(made: readonly MadeCall[]): Tally {
  const tally: Tally = { paid: 0, free: 0, failed: 0, 'not charged': 0, unknown: 0 };
  for (const { told } of made) tally[typeof told === 'object' ? 'paid' : told] += 1;
  return tally;
}
