/** One of the checkouts that are compared: PostgreSQL, API processes and consumers of its own, by its own code. */
import { join } from 'node:path';
import type * as databases from '../src/store/database.ts';
import type * as rollups from '../src/store/earnings/rollups.ts';
import { childrenOfThis } from './cpu-time.ts';
import type * as ledgers from './ledger.ts';
import type * as spendKeyFiles from './spend-keys.ts';
import type * as stacks from './stack.ts';

export interface Side {
  readonly api: stacks.HttpServer;
  readonly ledger: ledgers.Ledger;
  /** Undefined where the commit has no spend keys. */
  readonly spendKeys: spendKeyFiles.SpendKeysFiles | undefined;
  /** Its processes, without those that they started. */
  readonly pids: {
    readonly postgres: readonly number[];
    readonly api: readonly number[];
  };
  /** Moves all that charges left in the tails. */
  rollUp(): Promise<void>;
  /** Leaves nothing for autovacuum, which would do it during some slices of some sides. */
  vacuum(): Promise<void>;
  end(): Promise<void>;
}

const startedSince = (earlier: readonly number[]) =>
  childrenOfThis().filter((pid) => !earlier.includes(pid));

/** All by the code of the checkout in `folder`. */
export async function startSide(folder: string): Promise<Side> {
  const load = (file: string) => import(join(folder, file));
  const before = childrenOfThis();
  const { startStack, startApi, withClient } = (await load('bench/stack.ts')) as typeof stacks;
  const { createLedger, proveWhole } = (await load('bench/ledger.ts')) as typeof ledgers;
  const stack = await startStack();
  try {
    const ledger = await createLedger(stack, 'compared', 1);
    const keys = (await load('bench/spend-keys.ts').catch(() => undefined)) as
      | typeof spendKeyFiles
      | undefined;
    const spendKeys = await keys?.makeSpendKeys(ledger, stack.directory);
    const postgres = startedSince(before);
    const api = await startApi(stack, ledger.databaseUrl);
    const { createDatabase } = (await load('src/store/database.ts')) as typeof databases;
    const { rollUp } = (await load('src/store/earnings/rollups.ts')) as typeof rollups;
    const database = await createDatabase(ledger.databaseUrl, {
      maxPoolSize: 1,
      onError: () => {},
    });
    return {
      api,
      ledger,
      spendKeys,
      pids: { postgres, api: startedSince([...before, ...postgres]) },
      rollUp: async () => {
        while ((await rollUp(database)).hasMore);
      },
      vacuum: () =>
        withClient(ledger.databaseUrl, async (client) => {
          await client.query('vacuum analyze');
        }),
      end: async () => {
        await Promise.all([api.stop(), database.end()]);
        try {
          await proveWhole(ledger);
        } finally {
          await stack.stop();
        }
      },
    };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}
