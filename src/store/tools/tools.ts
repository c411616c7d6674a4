/** Tools: a developer's priced operations, registered or only charged by name. */
import { randomUUIDv7 } from 'node:crypto';
import { Type, type Static } from 'typebox';
import type { Micros } from '../../domain/money.ts';
import type { RateCard } from '../../domain/rate-card.ts';
import {
  type Connection,
  type Database,
  existsRow,
  type Fragment,
  micros,
  nullable,
  row,
  sql,
  type Transaction,
} from '../database.ts';
import { earnedIn } from '../earnings/earnings.ts';

/** The current card; all null if there is none. Picodollars are text, because JSON has no bigint. */
export const cardFields = {
  cardVersion: nullable(Type.Integer()),
  units: nullable(Type.Array(Type.String())),
  unitPicos: nullable(Type.Array(Type.String())),
};

type CardFields = Static<ReturnType<typeof Type.Object<typeof cardFields>>>;

const PricedTool = Type.Object({
  developerId: Type.String(),
  name: Type.String(),
  priceMicros: nullable(micros),
  isArchived: Type.Boolean(),
  ...cardFields,
});

/** A tool as a charge needs it. */
export type PricedTool = Static<typeof PricedTool>;

const pricedRow = row(PricedTool);

/** The columns of the current card of a row of `farebox.tools`. */
function cardOf(tools: string): Fragment {
  const current = sql.fragment`
    from farebox.rate_cards c
    where c.tool_id = ${sql.identifier([tools, 'id'])} and c.version = ${sql.identifier([tools, 'card'])}
  `;
  return sql.fragment`
    ${sql.identifier([tools, 'card'])} as "cardVersion", (select c.units ${current}) as units,
    (select c.unit_picos::text[] ${current}) as "unitPicos"
  `;
}

/** The current card of a tool; null if it has none. */
export function rateCardOf({ cardVersion, units, unitPicos }: CardFields): RateCard | null {
  if (cardVersion === null) return null;
  const picos = unitPicos ?? [];
  const prices = (units ?? []).map((unit, index) => [unit, BigInt(picos[index] ?? 0)] as const);
  return { version: cardVersion, picosOf: new Map(prices) };
}

export interface ToolName {
  readonly developerId: string;
  readonly name: string;
}

/**
 * Each name probes the index by itself (`lateral ... offset 0`): PostgreSQL may otherwise read all tools for
 * a few dozen.
 */
export async function findPricedTools(
  connection: Connection,
  names: readonly ToolName[],
): Promise<readonly PricedTool[]> {
  return connection.any(sql.type(pricedRow)`
    select t.developer_id as "developerId", t.name, t.price_micros as "priceMicros",
      t.archived_at is not null as "isArchived", ${cardOf('t')}
    from ${sql.unnest(
      names.map((tool) => [tool.developerId, tool.name]),
      ['uuid', 'text'],
    )} as n (developer_id, name)
    cross join lateral (
      select * from farebox.tools where developer_id = n.developer_id and name = n.name offset 0
    ) t
  `);
}

/** The most unregistered tool names per developer. Limits the rows that mistyped names create. */
export const UNREGISTERED_MAX = 1_000;

/**
 * Records tool names that are charged before they are registered, in one statement. Returns those that exist now. The
 * developers of the others have too many already.
 */
export async function noteToolNames(
  database: Database,
  tools: readonly ToolName[],
): Promise<readonly PricedTool[]> {
  return database.transaction(async (tx) => {
    await lockTools(tx, [...new Set(tools.map(({ developerId }) => developerId))]);
    await tx.query(sql.typeAlias('nothing')`
    with asked as (
      select a.*, row_number() over (partition by developer_id order by name) as place
      from ${sql.unnest(
        tools.map(({ developerId, name }) => [randomUUIDv7(), developerId, name]),
        ['uuid', 'uuid', 'text'],
      )} as a (id, developer_id, name)
      where not exists (
        select from farebox.tools t where t.developer_id = a.developer_id and t.name = a.name
      )
    ), unregistered as (
      select d.developer_id, (select count(*) from farebox.tools t
        where t.developer_id = d.developer_id and registered_at is null) as count
      from (select distinct developer_id from asked) d
    )
    insert into farebox.tools (id, developer_id, name)
    select id, developer_id, name from asked join unregistered using (developer_id)
    where count + place <= ${UNREGISTERED_MAX}
    order by developer_id, name
    on conflict on constraint tools_name_unique do nothing
  `);
    return findPricedTools(tx, tools);
  });
}

const Tool = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  priceMicros: nullable(micros),
  isArchived: Type.Boolean(),
  createdAt: Type.String(),
  ...cardFields,
});

export type Tool = Static<typeof Tool>;

const toolRow = row(Tool);
const versionRow = row(Type.Object({ version: Type.Integer() }));

const toolColumns = sql.fragment`
  id, name, description, price_micros as "priceMicros", archived_at is not null as "isArchived",
  created_at as "createdAt", ${cardOf('tools')}
`;

/** The most registered tools per developer, archived ones included. Limits the rows that one account can write. */
export const REGISTERED_MAX = 1_000;

const mayRegister = (developerId: string) => sql.fragment`
  (select count(*) from farebox.tools where developer_id = ${developerId} and registered_at is not null)
    < ${REGISTERED_MAX}
`;

/**
 * The developers add tools one request at a time until the transaction ends, so the counts hold. A charge by a new name
 * waits for this lock, so it is not that of the account's row, which top-ups and keys hold.
 */
async function lockTools(tx: Transaction, developerIds: readonly string[]): Promise<void> {
  await tx.query(sql.typeAlias('nothing')`
    select pg_advisory_xact_lock(lock) from (
      select hashtextextended('farebox.tools ' || developer, 0) as lock
      from unnest(${sql.array([...developerIds], 'text')}) as d (developer) order by 1
    ) ordered
  `);
}

/** `exists` when the name is already registered. A name that was only charged keeps its id. */
export async function registerTool(
  database: Database,
  developerId: string,
  tool: {
    readonly name: string;
    readonly description: string;
    readonly priceMicros: Micros | null;
    readonly card?: NewCard | null;
  },
): Promise<Tool | 'exists' | 'too_many'> {
  return database.transaction(async (tx) => {
    await lockTools(tx, [developerId]);
    const registered = await tx.maybeOne(sql.type(toolRow)`
      insert into farebox.tools (id, developer_id, name, description, price_micros, registered_at)
      select ${randomUUIDv7()}, ${developerId}, ${tool.name}, ${tool.description}, ${tool.priceMicros}::int8, now()
      where ${mayRegister(developerId)}
      on conflict on constraint tools_name_unique do update
        set description = excluded.description, price_micros = excluded.price_micros,
          registered_at = now(), changed_at = now()
        where tools.registered_at is null
      returning ${toolColumns}
    `);
    if (registered && tool.card) {
      const version = await versionOf(tx, developerId, registered.id, tool.card);
      return tx.one(sql.type(toolRow)`
        update farebox.tools set card = ${version}::int2 where id = ${registered.id} returning ${toolColumns}
      `);
    }
    if (registered) return registered;
    const exists = await tx.oneFirst(sql.type(existsRow)`
      select exists(
        select from farebox.tools
        where developer_id = ${developerId} and name = ${tool.name} and registered_at is not null
      )
    `);
    return exists ? 'exists' : 'too_many';
  });
}

/** By id or by name; null when the developer has no such tool. */
export async function findTool(
  connection: Connection,
  developerId: string,
  by: { readonly id: string } | { readonly name: string },
): Promise<Tool | null> {
  return connection.maybeOne(sql.type(toolRow)`
    select ${toolColumns} from farebox.tools
    where developer_id = ${developerId}
      and ${'id' in by ? sql.fragment`id = ${by.id}` : sql.fragment`name = ${by.name}`}
  `);
}

const FoundCard = Type.Object({ ...cardFields, createdAt: Type.String() });
const foundCardRow = row(FoundCard);

/** A card that the tool has or had; null if the developer has no such tool, or the tool had no such card. */
export async function findRateCard(
  connection: Connection,
  developerId: string,
  toolId: string,
  version: number,
): Promise<Static<typeof FoundCard> | null> {
  return connection.maybeOne(sql.type(foundCardRow)`
    select c.version as "cardVersion", c.units, c.unit_picos::text[] as "unitPicos", c.created_at as "createdAt"
    from farebox.tools t join farebox.rate_cards c on c.tool_id = t.id
    where t.id = ${toolId} and t.developer_id = ${developerId} and c.version = ${version}
  `);
}

export interface ToolChanges {
  readonly description: string | undefined;
  /** Null removes the price. */
  readonly priceMicros: Micros | null | undefined;
  readonly isArchived: boolean | undefined;
  /** Null removes the card. */
  readonly card: NewCard | null | undefined;
}

/** The units of a card, and the price of each, in picodollars. */
export type NewCard = RateCard['picosOf'];

/** The most cards that a tool can have had. Limits the rows that one account can write, as they are never deleted. */
export const CARD_VERSIONS_MAX = 1_000;

/**
 * The version of the card: a new one, unless it is the current card already. Null when the developer has no such tool,
 * the tool has had too many cards, or it cannot be registered. The transaction has locked the developer's tools.
 */
async function versionOf(
  tx: Transaction,
  developerId: string,
  toolId: string,
  card: NewCard,
): Promise<number | null> {
  const units = [...card.keys()].toSorted();
  const picos = units.map((unit) => String(card.get(unit)));
  return tx.maybeOneFirst(sql.type(versionRow)`
    with tool as (
      select id, card, (select coalesce(max(version), 0) from farebox.rate_cards where tool_id = id) as latest
      from farebox.tools where id = ${toolId} and developer_id = ${developerId}
        and (registered_at is not null or ${mayRegister(developerId)})
    ), same as (
      select c.version from tool t join farebox.rate_cards c on c.tool_id = t.id and c.version = t.card
      where c.units = ${sql.array(units, 'text')} and c.unit_picos = ${sql.array(picos, 'int8')}
    ), made as (
      insert into farebox.rate_cards (tool_id, version, units, unit_picos)
      select id, latest + 1, ${sql.array(units, 'text')}, ${sql.array(picos, 'int8')} from tool
      where latest < ${CARD_VERSIONS_MAX} and not exists (select from same)
      returning version
    )
    select version from same union all select version from made
  `);
}

async function hasHadAllCards(tx: Transaction, toolId: string): Promise<boolean> {
  return tx.oneFirst(sql.type(existsRow)`
    select exists(
      select from farebox.rate_cards where tool_id = ${toolId} and version >= ${CARD_VERSIONS_MAX}
    )
  `);
}

/**
 * Changes the defined members. A name that was only charged becomes registered by the change, which counts as a
 * registration. Null when the developer has no such tool.
 */
export async function changeTool(
  database: Database,
  developerId: string,
  id: string,
  { description, priceMicros, isArchived, card }: ToolChanges,
): Promise<Tool | 'too_many' | 'too_many_cards' | null> {
  return database.transaction(async (tx) => {
    await lockTools(tx, [developerId]);
    const version = card && (await versionOf(tx, developerId, id, card));
    if (card && version === null) {
      const found = await findTool(tx, developerId, { id });
      return found && ((await hasHadAllCards(tx, id)) ? 'too_many_cards' : 'too_many');
    }
    const changed = await tx.maybeOne(sql.type(toolRow)`
      update farebox.tools
      set description = coalesce(${description ?? null}, description),
        price_micros = ${priceMicros === undefined ? sql.fragment`price_micros` : sql.fragment`${priceMicros}::int8`},
        card = ${version === undefined ? sql.fragment`card` : sql.fragment`${version}::int2`},
        archived_at = case ${isArchived ?? null}::bool
          when true then coalesce(archived_at, now()) when false then null else archived_at end,
        registered_at = coalesce(registered_at, now()), changed_at = now()
      where id = ${id} and developer_id = ${developerId}
        and (registered_at is not null or ${mayRegister(developerId)})
      returning ${toolColumns}
    `);
    if (changed) return changed;
    return (await findTool(tx, developerId, { id })) && 'too_many';
  });
}

const ListedTool = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  priceMicros: nullable(micros),
  ...cardFields,
  totalCharges: Type.Integer(),
  totalRevenueMicros: micros,
});

export type ListedTool = Static<typeof ListedTool>;

const listedRow = row(ListedTool);

interface WhichTools {
  readonly isArchived: boolean;
  /** Only the tool with this name. */
  readonly name?: string | undefined;
  /** The last tool of the previous page. */
  readonly afterId?: string | undefined;
  readonly limit: number;
}

/** A developer's tools, either archived or active, oldest first, each with its earnings. */
export async function listTools(
  database: Database,
  developer: { readonly developerId: string; readonly developerNumber: number },
  { isArchived, name, afterId, limit }: WhichTools,
): Promise<readonly ListedTool[]> {
  return database.any(sql.type(listedRow)`
    with page as (
      select id, name, description, price_micros, card from farebox.tools
      where ${sql.and([
        sql.fragment`developer_id = ${developer.developerId} and (archived_at is not null) = ${isArchived}`,
        name !== undefined && sql.fragment`name = ${name}`,
        afterId !== undefined && sql.fragment`id > ${afterId}`,
      ])}
      order by id limit ${limit}
    )
    select t.id, t.name, t.description, t.price_micros as "priceMicros", ${cardOf('t')},
      coalesce(c.charges, 0) as "totalCharges", coalesce(c.micros, 0) as "totalRevenueMicros"
    from page t left join (
      select tool, sum(charges)::int8 as charges, sum(amount_micros)::int8 as micros
      from (${earnedIn(developer, {})}) e where tool in (select name from page) group by tool
    ) c on c.tool = t.name
    order by t.id
  `);
}
