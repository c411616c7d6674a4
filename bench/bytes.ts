/**
 * The bytes per charge in Postgres: posts charges with idempotency keys, as tool servers send them, then measures
 * sizes.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createLedger, proveWhole, type Ledger } from './ledger.ts';
import { makeSpendKeys } from './spend-keys.ts';
import { startApi, withClient, type HttpServer, type Stack } from './stack.ts';

const CHARGES = 200_000;
const PER_REQUEST = 500;
const REQUESTS_AT_ONCE = 4;
/** Charges of a single developer would fill the index from left to right, which flatters it. */
const DEVELOPERS = 100;

/** Bytes per charge, for the table and each of its indexes. */
export interface ChargeSize {
  readonly charges: number;
  readonly bytesPerCharge: number;
  readonly parts: Readonly<Record<string, number>>;
}

/** By keys of accounts, or by spend keys three budgets deep. */
export async function measureBytes(
  stack: Stack,
  seed: number,
  payers: 'accounts' | 'spend_keys' = 'accounts',
): Promise<ChargeSize> {
  const ledger = await createLedger(stack, `bytes_${payers}`, seed);
  const keys = payers === 'accounts' ? ledger.consumerKeys : await spendKeysOf(ledger, stack);
  const api = await startApi(stack, ledger.databaseUrl);
  try {
    let left = CHARGES / PER_REQUEST;
    const loop = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await chargeWithKeys(ledger, keys, api);
      }
    };
    await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, loop));
  } finally {
    await api.stop();
  }
  await proveWhole(ledger);
  const parts = await sizesOf(ledger);
  const bytesPerCharge = Object.values(parts).reduce((sum, bytes) => sum + bytes, 0);
  return { charges: CHARGES, bytesPerCharge, parts };
}

function draw<T>(from: readonly T[]): T | undefined {
  return from[Math.floor(Math.random() * from.length)];
}

async function spendKeysOf(ledger: Ledger, { directory }: Stack): Promise<readonly string[]> {
  const files = await makeSpendKeys(ledger, directory);
  return (await readFile(files[3], 'utf8')).split('\n');
}

async function chargeWithKeys(
  ledger: Ledger,
  keys: readonly string[],
  api: HttpServer,
): Promise<void> {
  const charges = Array.from({ length: PER_REQUEST }, () => ({
    apiKey: draw(keys),
    tool: 'search',
    amount: 0.0001,
    idempotencyKey: randomUUID(),
  }));
  const developerKey = draw(ledger.developerKeys.slice(0, DEVELOPERS));
  const response = await fetch(`${api.url}/v1/charges/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${developerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ charges }),
  });
  const text = await response.text();
  if (text.split('"status":201').length !== PER_REQUEST + 1) {
    throw new Error(`not every charge of a batch was made: ${text.slice(0, 500)}`);
  }
}

/** Over all partitions. An index has its parent's name. */
async function sizesOf({ databaseUrl }: Ledger): Promise<Record<string, number>> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ name: string; bytes: string }>(`
      with relations as (
        select 'charges' as name, relid from pg_partition_tree('farebox.charges')
        union all
        select parent.relname, tree.relid
        from pg_index i join pg_class parent on parent.oid = i.indexrelid
          cross join lateral pg_partition_tree(i.indexrelid) tree
        where i.indrelid = 'farebox.charges'::regclass
      )
      select name, sum(pg_relation_size(relid)) as bytes from relations group by name order by name
    `),
  );
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, Number(bytes) / CHARGES]));
}
