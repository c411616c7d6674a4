/** What an API process and a worker check before they start. */
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { checkServer } from '../store/check-server.ts';
import { checkMigrated } from '../store/migrations.ts';
import { keepProcessorMode } from '../store/processor-mode.ts';
import { isLiveKey } from '../stripe/webhook.ts';

/**
 * Throws when the PostgreSQL is unsuitable, the database is not migrated, or it belongs to Stripe keys of the other mode.
 */
export async function checkStart({ databaseUrl, stripe }: Config, log: Logger): Promise<void> {
  for (const warning of await checkServer(databaseUrl)) log.warn(warning);
  await checkMigrated(databaseUrl);
  await keepProcessorMode(databaseUrl, isLiveKey(stripe.secretKey));
}
