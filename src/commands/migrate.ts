/** `farebox migrate`: migrates the database to this release, and the Temporal namespace if one is set. */
import { Connection } from '@temporalio/client';
import type { Command } from 'commander';
import { namesTemporal, readLedgerConfig, readTemporalConfig } from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { checkServer } from '../store/check-server.ts';
import { migrate } from '../store/migrations.ts';
import { ensureChargePartitions } from '../store/charges/partitions.ts';
import { CONNECT_TIMEOUT_MS, connectionOptions } from '../temporal/client.ts';
import { checkNamespace } from '../temporal/namespace.ts';
import { ensureSearchAttributes, registerByHand } from '../temporal/search-attributes.ts';
import { dataDirOption } from './data-dir-option.ts';

export function register(command: Command): void {
  command.addOption(dataDirOption()).action(async ({ dataDir }: { dataDir: string }) => {
    endOnSignals();
    const env = await environmentOf(dataDir);
    const config = readLedgerConfig(env);
    for (const warning of await checkServer(config.databaseUrl)) {
      process.stderr.write(`farebox: ${warning}\n`);
    }
    const applied = await migrate(config.databaseUrl, undefined, (holder) =>
      process.stderr.write(`farebox: waiting for another migration (${holder})\n`),
    );
    const { putOff } = await ensureChargePartitions(config.databaseUrl, 'now');
    if (putOff.length > 0)
      throw new Error(
        `Could not create these partitions under load: ${putOff.join(', ')}. Run farebox migrate again.`,
      );
    process.stdout.write(
      applied.length === 0 ? 'The database is up to date.\n' : `Applied ${applied.join(', ')}.\n`,
    );
    if (namesTemporal(env)) await registerSearchAttributes(env);
  });
}

/** In a container without an init, a signal that nobody listens to does nothing. */
function endOnSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      process.stderr.write(`farebox: migrate was stopped by ${signal}; run it again\n`);
      process.exit(1);
    });
  }
}

async function registerSearchAttributes(env: Readonly<Record<string, string>>): Promise<void> {
  const config = readTemporalConfig(env);
  const connection = await Connection.connect({
    ...connectionOptions(config),
    connectTimeout: CONNECT_TIMEOUT_MS,
  }).catch((error: unknown) => {
    throw new Error(
      `Temporal did not respond at ${config.address}, so its search attributes may be missing. The database is migrated; ` +
        'run farebox migrate again when Temporal is available.',
      { cause: error },
    );
  });
  try {
    await checkNamespace(connection, config);
    const { kind } = await ensureSearchAttributes(connection, config.namespace);
    if (kind === 'not_permitted') process.stdout.write(registerByHand(config.namespace));
  } finally {
    await connection.close();
  }
}
