/** Shared by commands that use Temporal: reads the settings, connects and disconnects. */
import { readTemporalConfig } from '../config.ts';
import type { Environment } from '../read-setting.ts';
import {
  CONNECT_TIMEOUT_MS,
  createTemporalClient,
  type TemporalClient,
} from '../temporal/client.ts';
import { checkNamespace } from '../temporal/namespace.ts';
import { CommandError } from './database-command.ts';

export async function withTemporal<T>(
  env: Environment,
  work: (temporal: TemporalClient) => Promise<T>,
): Promise<T> {
  const config = readTemporalConfig(env);
  const temporal = createTemporalClient(config);
  try {
    // Errors of later calls name no address.
    if (!(await temporal.isUp(CONNECT_TIMEOUT_MS)))
      throw new CommandError(`Temporal did not respond at ${config.address}.`);
    await checkNamespace(temporal.client, config);
    return await work(temporal);
  } finally {
    await temporal.close();
  }
}
