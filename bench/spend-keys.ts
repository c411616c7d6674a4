/**
 * Spend keys for the rows about budgets: for each of some consumers a path of three budgets, a key at both
 * its ends; and one consumer with a single budget that has as many keys as the other rows have consumers.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hashOfKey, newKey } from '../src/store/accounts/api-keys.ts';
import { CONSUMERS as HOT_KEYS, type Ledger } from './ledger.ts';
import { withClient } from './stack.ts';

/** As many keys and budgets as an API process keeps in memory beside the keys of the other rows. */
const CONSUMERS = 2_000;
const DEPTHS = [1, 3] as const;
/** The consumer of the hot budget. */
const HOT = CONSUMERS + 1;

export interface SpendKeysFiles extends Readonly<Record<(typeof DEPTHS)[number], string>> {
  /** Keys of one budget. */
  readonly hot: string;
}

/** Files with one spend key per line, by the depth of its budget. No limit is ever reached. */
export async function makeSpendKeys(
  { databaseUrl, name }: Pick<Ledger, 'databaseUrl' | 'name'>,
  directory: string,
): Promise<SpendKeysFiles> {
  const files = DEPTHS.map((depth) => join(directory, `${name}-depth-${depth}-keys`));
  const hot = join(directory, `${name}-hot-budget-keys`);
  await withClient(databaseUrl, async (client) => {
    await client.query(`
      insert into farebox.budgets (ledger, consumer_id, number, limit_micros, window_unit, window_limit_micros)
      select c.ledger, c.id, d.number, 1e15::int8, 2, 1e15::int8
      from bench.consumers c cross join generate_series(1, 3) d (number)
      where c.n <= ${CONSUMERS} or c.n = ${HOT} and d.number = 1`);
    await client.query(`
      insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
      select uuidv7(), b.ledger, b.consumer_id, b.number, array(select generate_series(1, b.number)), 'bench'
      from farebox.budgets b`);
    for (const [index, depth] of DEPTHS.entries()) {
      const keys = Array.from({ length: CONSUMERS }, () => newKey('fare', 'consumer', 'live'));
      await client.query(
        `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
         select uuidv7(), decode(k.hash, 'hex'), a.id, c.ledger, c.id, $2::int, $2, array(select generate_series(1, $2)),
           'mark'
         from unnest($1::text[]) with ordinality k (hash, n)
         join bench.consumers c on c.n = k.n join farebox.accounts a on a.consumer_id = c.id`,
        [keys.map(hashOfKey), depth],
      );
      await writeFile(files[index] ?? '', keys.join('\n'));
    }
    const keys = Array.from({ length: HOT_KEYS }, () => newKey('fare', 'consumer', 'live'));
    await client.query(
      `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
       select uuidv7(), decode(k.hash, 'hex'), a.id, c.ledger, c.id, k.n, 1, '{1}', 'mark'
       from unnest($1::text[]) with ordinality k (hash, n)
       join bench.consumers c on c.n = ${HOT} join farebox.accounts a on a.consumer_id = c.id`,
      [keys.map(hashOfKey)],
    );
    await writeFile(hot, keys.join('\n'));
    await client.query(
      'vacuum analyze farebox.budgets, farebox.budget_details, farebox.spend_keys',
    );
  });
  const [first = '', third = ''] = files;
  return { 1: first, 3: third, hot };
}
