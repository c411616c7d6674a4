/** The end of a simulation: everything that can be read agrees with the model, page by page. */
import assert from 'node:assert/strict';
import type { Actor } from './actor.ts';
import { microsOf, type Consumer, type Developer, type MadeCharge } from './model.ts';
import type { Random } from '../support/random.ts';
import type { Service } from './service.ts';

interface Page {
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
}

interface Reader {
  readonly service: Service;
  readonly random: Random;
}

export async function compare(
  service: Service,
  random: Random,
  actors: readonly Actor[],
): Promise<void> {
  const reader = { service, random };
  const consumers = actors.flatMap((actor) => actor.consumers);
  for (const consumer of consumers) await compareConsumer(reader, consumer);
  const charges = consumers.flatMap((consumer) => consumer.charges);
  const byDeveloper = Map.groupBy(charges, ({ request }) => request.developer);
  for (const [developer, earned] of byDeveloper) {
    await compareDeveloper(reader, developer, earned);
    await compareAttribution(reader, developer, consumers);
  }
}

async function compareConsumer(reader: Reader, consumer: Consumer): Promise<void> {
  const { apiKey, charges, credits, spent } = consumer;
  const { balance } = await read<{ balance: number }>(reader, '/v1/balance', apiKey);
  assert.equal(microsOf(balance), consumer.balance);
  const pages = await readPages<{ charges: { id: string; receipt: string }[]; total: number }>(
    reader,
    '/v1/usage',
    apiKey,
  );
  for (const { total } of pages) assert.equal(microsOf(total), spent);
  assert.deepEqual(
    sorted(pages.flatMap((page) => page.charges.map(({ id, receipt }) => `${id} ${receipt}`))),
    sorted(charges.map(({ body: { id, receipt } }) => `${id} ${receipt}`)),
  );
  const topUps = await readPages<{ topUps: { id: string; amount: number; status: string }[] }>(
    reader,
    '/v1/top-up',
    apiKey,
  );
  const completed = topUps
    .flatMap((page) => page.topUps)
    .filter(({ status }) => status === 'completed');
  assert.deepEqual(
    sorted(completed.map(({ id, amount }) => `${id} ${microsOf(amount)}`)),
    sorted(credits.map(({ topUpId, micros }) => `${topUpId} ${micros}`)),
  );
}

async function compareDeveloper(
  reader: Reader,
  { developerKey }: Developer,
  charges: readonly MadeCharge[],
): Promise<void> {
  const byTool = Map.groupBy(charges, ({ request }) => request.tool);
  const earnings = await read<{
    totalEarnings: number;
    todayEarnings: number;
    byTool: Record<string, number>;
  }>(reader, '/v1/earnings', developerKey);
  assert.deepEqual(
    Object.fromEntries(Object.entries(earnings.byTool).map(([tool, sum]) => [tool, microsOf(sum)])),
    Object.fromEntries([...byTool].map(([tool, made]) => [tool, sumOf(made)])),
  );
  assert.equal(microsOf(earnings.totalEarnings), sumOf(charges));
  const today = new Date().toISOString().slice(0, 10);
  assert.equal(
    microsOf(earnings.todayEarnings),
    sumOf(charges.filter(({ body }) => body.createdAt.startsWith(today))),
  );
  const { tools } = await read<{
    tools: { name: string; totalCharges: number; totalRevenue: number }[];
  }>(reader, '/v1/tools', developerKey);
  for (const { name, totalCharges, totalRevenue } of tools) {
    const made = byTool.get(name) ?? [];
    assert.deepEqual([totalCharges, microsOf(totalRevenue)], [made.length, sumOf(made)], name);
    byTool.delete(name);
  }
  assert.equal(byTool.size, 0, 'a tool that was charged is not listed');
}

async function compareAttribution(
  reader: Reader,
  { developerId, developerKey }: Developer,
  consumers: readonly Consumer[],
): Promise<void> {
  const expected = new Map<string, { micros: number; charges: number }>();
  for (const part of consumers.flatMap((consumer) => [...consumer.attributions()])) {
    if (part.developerId !== developerId) continue;
    const sum = expected.get(part.topUpId) ?? { micros: 0, charges: 0 };
    expected.set(part.topUpId, { micros: sum.micros + part.micros, charges: sum.charges + 1 });
  }
  const pages = await readPages<{ topUps: { id: string; charged: number; charges: number }[] }>(
    reader,
    '/v1/top-ups',
    developerKey,
  );
  assert.deepEqual(
    sorted(
      pages.flatMap((page) =>
        page.topUps.map(({ id, charged, charges }) => `${id} ${microsOf(charged)} ${charges}`),
      ),
    ),
    sorted([...expected].map(([id, { micros, charges }]) => `${id} ${micros} ${charges}`)),
  );
}

function read<T>({ service, random }: Reader, path: string, key: string): Promise<T> {
  return service.read<T>(random, path, key);
}

async function readPages<T>(reader: Reader, path: string, key: string): Promise<(T & Page)[]> {
  const pages: (T & Page)[] = [];
  for (let cursor = ''; ;) {
    const page = await read<T & Page>(reader, `${path}?limit=100${cursor}`, key);
    pages.push(page);
    if (!page.hasMore) return pages;
    cursor = `&cursor=${page.nextCursor}`;
  }
}

const sumOf = (charges: readonly MadeCharge[]): number =>
  charges.reduce((sum, { amountMicros }) => sum + amountMicros, 0);

const sorted = (lines: readonly string[]): string[] =>
  lines.toSorted((one, other) => (one < other ? -1 : 1));
