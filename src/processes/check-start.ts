/** What an API process and a worker check before they start. */
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { checkServer } from '../store/check-server.ts';
import { createDatabase } from '../store/database.ts';
import { ensureSameMasterSecrets } from '../store/master-secrets.ts';
import { checkMigrated } from '../store/migrations.ts';
import { ensureProcessorMode } from '../store/processor-mode.ts';
import { isLiveKey } from '../stripe/webhook.ts';

/**
 * Throws when the PostgreSQL is unsuitable, the database is not migrated, or it belongs to Stripe keys of the
 * other mode or to other master secrets.
 */
export async function checkStart(config: Config, log: Logger): Promise<void> {
  const { databaseUrl, stripe, masterSecrets } = config;
  for (const warning of await checkServer(databaseUrl)) log.warn(warning);
  await checkMigrated(databaseUrl);
  const database = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  try {
    await ensureProcessorMode(database, isLiveKey(stripe.secretKey));
    for (const warning of await ensureSameMasterSecrets(database, masterSecrets)) log.warn(warning);
  } finally {
    await database.end();
  }
}
