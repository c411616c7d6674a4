/**
 * Developers, consumers with top-ups, and charges at any time; and every figure that a developer reads,
 * next to the same figure from the charges alone, added up in the simplest way, in one snapshot.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { DAY_MS, HOUR_MS } from '../../src/domain/durations.ts';
import { uuidFloor, uuidOf, uuidTimeMs } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { findAccount } from '../../src/store/accounts/accounts.ts';
import type { ChargeDraft } from '../../src/store/charges/post-charges.ts';
import { creditManually } from '../../src/store/top-ups/credit-top-up.ts';
import { createDatabase, sql, type Connection, type Database } from '../../src/store/database.ts';
import { listEarnings, sumEarningsByTool } from '../../src/store/earnings/earnings.ts';
import { cutLots } from '../../src/store/balance/lots.ts';
import { listTools, noteToolNames } from '../../src/store/tools/tools.ts';
import { listAttributedTopUps } from '../../src/store/earnings/top-up-attribution.ts';
import { createTestAccounts, type TestAccount } from './accounts.ts';
import { post } from './charge-drafts.ts';

export const TOOLS = ['search', 'fetch', '__proto__'];

export interface Charged {
  readonly consumer: Party;
  readonly developer: Party;
  readonly amount: number;
  readonly tool?: string;
  readonly timeMs?: number;
}

export interface Party extends TestAccount {
  readonly accountId: string;
  readonly ledger: number;
  /** UUIDs, and the developer's number in charges. */
  readonly consumer: string;
  readonly developer: string;
  readonly developerNumber: number;
}

export type EarningsHarness = Awaited<ReturnType<typeof openEarningsHarness>>;

export async function openEarningsHarness(databaseUrl: string) {
  // Roll-ups wait for one another, and on a busy machine for long.
  const database = await createDatabase(databaseUrl, {
    maxPoolSize: 8,
    statementTimeoutMs: 60_000,
    lockTimeoutMs: 60_000,
    onError: () => {},
  });
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();

  return {
    database,
    client,

    async parties(count: number): Promise<Party[]> {
      const accounts = await createTestAccounts(databaseUrl, count, 0);
      return Promise.all(accounts.map((account) => partyOf(database, account)));
    },

    /** A completed top-up, by hand. */
    async topUp({ accountId, ledger, consumer }: Party, micros: number): Promise<string> {
      const credit = { accountId, ledger, consumerId: consumer, amountMicros: asMicros(micros) };
      const [id] = await database.transaction((tx) => creditManually(tx, [credit]));
      return id ?? assert.fail();
    },

    /** Takes up to this much of the unspent money, from the first lots on, like a refund. */
    async cut({ ledger, consumer }: Party, micros: number): Promise<void> {
      await database.transaction(async (tx) => {
        const balance = await tx.oneFirst(sql.unsafe`
          select credited_micros - spent_micros from farebox.consumers
          where ledger = ${ledger} and id = ${consumer} for update
        `);
        const amountMicros = Math.min(micros, Number(balance));
        if (amountMicros === 0) return;
        await cutLots(tx, { ledger, consumerId: consumer }, { kind: 'adjustment', amountMicros });
      });
    },

    /** Takes back a wholly unspent top-up: its lot is empty, later ones move down. */
    async cutWhole({ ledger, consumer }: Party, topUpId: string): Promise<void> {
      await client.query(
        `with gone as (
           select from_micros, to_micros - from_micros as micros from farebox.lots
           where ledger = $1 and consumer_id = $2 and top_up_id = $3
         ), lowered as (
           update farebox.consumers set credited_micros = credited_micros - micros
           from gone where ledger = $1 and id = $2
         )
         update farebox.lots l set to_micros = to_micros - micros,
           from_micros = case when l.top_up_id = $3 then l.from_micros else l.from_micros - micros end
         from gone g where l.ledger = $1 and l.consumer_id = $2 and l.from_micros >= g.from_micros`,
        [ledger, consumer, topUpId],
      );
    },

    /** Another lot of a top-up, like a failed refund leaves. */
    async lotAgain({ ledger, consumer }: Party, topUpId: string, micros: number): Promise<void> {
      await client.query(
        `with raised as (
           update farebox.consumers set credited_micros = credited_micros + $3
           where ledger = $1 and id = $2 returning credited_micros
         )
         insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
         select $1, $2, uuidv7(), credited_micros - $3, credited_micros, $4 from raised`,
        [ledger, consumer, micros, topUpId],
      );
    },

    /** In one flush. Returns how many of them could be paid. */
    async charge(charges: readonly Charged[]): Promise<number> {
      const names = new Map(
        charges.map(({ developer, tool = 'search' }) => [`${developer.developer} ${tool}`, tool]),
      );
      for (const [key, name] of names) {
        await noteToolNames(database, [{ developerId: key.slice(0, 36), name }]);
      }
      const outcomes = await post(database, charges.map(draftOf));
      return outcomes.filter(({ kind }) => kind === 'posted').length;
    },

    /** Throws unless each of these developers sees the sums of the charges. */
    async compare(developers: readonly Party[], todayMs: number): Promise<void> {
      await database.transaction(async (tx) => {
        await tx.query(sql.typeAlias('nothing')`set transaction isolation level repeatable read`);
        const [{ rows: snapshot }] = [
          await tx.query(sql.unsafe`select pg_export_snapshot() as id`),
        ];
        const books = await readBooks(client, (snapshot[0] as { id: string }).id);
        for (const developer of developers) {
          assert.deepEqual(await shownTo(tx, developer, todayMs), plain(books, developer, todayMs));
        }
      });
    },

    async tailRows(): Promise<number> {
      const { rows } = await client.query<{ count: number }>(`
        select (select count(*) from farebox.earnings_tail)::int
          + (select count(*) from farebox.attribution_tail)::int as count
      `);
      return rows[0]?.count ?? assert.fail();
    },

    async close(): Promise<void> {
      await client.end();
      await database.end();
    },
  };
}

async function partyOf(database: Database, account: TestAccount): Promise<Party> {
  const consumer = uuidOf('consumer', account.consumerId) ?? assert.fail();
  const developer = uuidOf('developer', account.developerId) ?? assert.fail();
  const found = (await findAccount(database, { uuid: consumer })) ?? assert.fail();
  const number = await database.oneFirst(sql.unsafe`
    select developer_number from farebox.accounts where id = ${found.id}
  `);
  return {
    ...account,
    accountId: found.id,
    ledger: found.ledger,
    consumer,
    developer,
    developerNumber: Number(number),
  };
}

function draftOf(charged: Charged): ChargeDraft {
  const { consumer, developer, amount, tool = 'search', timeMs = Date.now() } = charged;
  return {
    id: uuidFloor(timeMs).slice(0, -12) + randomBytes(6).toString('hex'),
    ledger: consumer.ledger,
    consumerId: consumer.consumer,
    developerId: developer.developer,
    developerNumber: developer.developerNumber,
    tool,
    amountMicros: asMicros(amount),
    idempotencyHash: null,
    fingerprint: null,
    metadata: null,
    spend: null,
  };
}

interface Figures {
  /** Micros in total, and today. */
  readonly byTool: ReadonlyMap<string, readonly (number | null)[]>;
  /** Micros and charges. */
  readonly tools: ReadonlyMap<string, readonly number[]>;
  /** What was earned in the hours at the edges of two days around midnight, which no whole day covers. */
  readonly aroundMidnight: number;
  readonly hours: readonly (readonly [beginsMs: number, micros: number, charges: number])[];
  readonly days: readonly (readonly [beginsMs: number, micros: number, charges: number])[];
  readonly topUps: readonly (readonly [id: string, micros: number, charges: number])[];
}

/** A day and a half before this midnight to an hour after it: days, hours, and both. */
const rangeAround = (todayMs: number) => ({
  fromMs: todayMs - 36 * HOUR_MS,
  toMs: todayMs + HOUR_MS,
});

async function shownTo(tx: Connection, developer: Party, todayMs: number): Promise<Figures> {
  const who = { developerId: developer.developer, developerNumber: developer.developerNumber };
  const range = rangeAround(todayMs);
  const byTool = await sumEarningsByTool(tx, who, {}, todayMs);
  const ranged = await sumEarningsByTool(tx, who, range, todayMs);
  const tools = await listTools(tx as Database, who, { isArchived: false, limit: 1_000 });
  const topUps = await listAttributedTopUps(tx, who, { limit: 1_000 });
  const series = async (interval: 'hour' | 'day') =>
    (await listEarnings(tx, who, {}, interval)).map(
      ({ beginsMs, earningsMicros, charges }) => [beginsMs, earningsMicros, charges] as const,
    );
  return {
    byTool: new Map(
      byTool.map(({ tool, earningsMicros, todayMicros }) => [tool, [earningsMicros, todayMicros]]),
    ),
    tools: new Map(
      tools
        .filter(({ totalCharges }) => totalCharges > 0)
        .map((tool) => [tool.name, [tool.totalRevenueMicros, tool.totalCharges]]),
    ),
    aroundMidnight: ranged.reduce((total, { earningsMicros }) => total + (earningsMicros ?? 0), 0),
    hours: await series('hour'),
    days: await series('day'),
    topUps: topUps.map(({ id, chargedMicros, charges }) => [id, chargedMicros, charges] as const),
  };
}

interface Charge {
  readonly id: string;
  readonly consumer: string;
  readonly developer: number;
  readonly tool: string;
  readonly amount: number;
  readonly ends: number;
}

interface Lot {
  readonly consumer: string;
  readonly from: number;
  readonly to: number;
  readonly topUp: string | null;
}

async function readBooks(client: Client, snapshot: string) {
  await client.query('begin isolation level repeatable read');
  await client.query(`set transaction snapshot '${snapshot}'`);
  const charges = await client.query<Charge>(`
    select id, consumer_id as consumer, developer, tool, amount_micros::int as amount,
      spent_micros::int as ends from farebox.charges
  `);
  const lots = await client.query<Lot>(`
    select consumer_id as consumer, from_micros::int as from, to_micros::int as to,
      top_up_id as "topUp" from farebox.lots
  `);
  await client.query('commit');
  return { charges: charges.rows, lots: lots.rows };
}

function plain(
  { charges, lots }: { readonly charges: readonly Charge[]; readonly lots: readonly Lot[] },
  { developerNumber }: Party,
  todayMs: number,
): Figures {
  const own = charges.filter(({ developer }) => developer === developerNumber);
  const between = (fromMs: number, toMs: number) => (charge: Charge) =>
    uuidTimeMs(charge.id) >= fromMs && uuidTimeMs(charge.id) < toMs;
  const isToday = between(todayMs, todayMs + DAY_MS);
  const names = [...new Set(own.map(({ tool }) => tool))];
  const { fromMs, toMs } = rangeAround(todayMs);
  const series = (lengthMs: number) => {
    const begins = own.map(({ id }) => Math.floor(uuidTimeMs(id) / lengthMs) * lengthMs);
    return [...new Set(begins)]
      .toSorted((a, b) => a - b)
      .map((beginsMs) => {
        const within = own.filter(between(beginsMs, beginsMs + lengthMs));
        return [beginsMs, sum(within), within.length] as const;
      });
  };
  const of = (tool: string) => own.filter((charge) => charge.tool === tool);
  const topUps = [...new Set(lots.flatMap(({ topUp }) => topUp ?? []))].flatMap((topUp) => {
    const parts = own
      .map(({ consumer, ends, amount }) =>
        lots
          .filter((lot) => lot.topUp === topUp && lot.consumer === consumer)
          .map(({ from, to }) => Math.min(to, ends) - Math.max(from, ends - amount))
          .reduce((total, part) => total + Math.max(part, 0), 0),
      )
      .filter((part) => part > 0);
    const micros = parts.reduce((total, part) => total + part, 0);
    return micros === 0 ? [] : [[topUp, micros, parts.length] as const];
  });
  return {
    byTool: new Map(names.map((tool) => [tool, [sum(of(tool)), sum(of(tool).filter(isToday))]])),
    tools: new Map(names.map((tool) => [tool, [sum(of(tool)), of(tool).length]])),
    aroundMidnight: sum(own.filter(between(fromMs, toMs))),
    hours: series(HOUR_MS),
    days: series(DAY_MS),
    topUps: topUps.toSorted(([a], [b]) => (a < b ? 1 : -1)),
  };
}

function sum(charges: readonly Charge[]): number {
  return charges.reduce((total, { amount }) => total + amount, 0);
}
