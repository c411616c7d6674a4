/** `farebox migrate`: migrates the database to this release, and the Temporal namespace if one is set. */
import { Connection } from '@temporalio/client';
import type { Command } from 'commander';
import { readLedgerConfig, readTemporalConfig } from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { checkServer } from '../store/check-server.ts';
import { migrate } from '../store/migrations.ts';
import { ensureChargePartitions } from '../store/charges/partitions.ts';
import { ensureSearchAttributes } from '../temporal/search-attributes.ts';
import { dataDirOption } from './data-dir-option.ts';

export function register(command: Command): void {
  command.addOption(dataDirOption()).action(async ({ dataDir }: { dataDir: string }) => {
    const env = await environmentOf(dataDir);
    const config = readLedgerConfig(env);
    for (const warning of await checkServer(config.databaseUrl)) {
      process.stderr.write(`farebox: ${warning}\n`);
    }
    const applied = await migrate(config.databaseUrl);
    const { putOff } = await ensureChargePartitions(config.databaseUrl, Date.now());
    if (putOff.length > 0)
      throw new Error(`Could not create partitions under load, run it again: ${putOff.join(', ')}`);
    process.stdout.write(
      applied.length === 0 ? 'The database is up to date.\n' : `Applied ${applied.join(', ')}.\n`,
    );
    if (env['TEMPORAL_ADDRESS']) await registerSearchAttributes(env);
  });
}

async function registerSearchAttributes(env: Readonly<Record<string, string>>): Promise<void> {
  const { address, namespace, tls, apiKey } = readTemporalConfig(env);
  const connection = await Connection.connect({
    address,
    tls,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  try {
    await ensureSearchAttributes(connection, namespace);
  } finally {
    await connection.close();
  }
}
