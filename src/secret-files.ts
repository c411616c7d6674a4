/**
 * Secrets from files, as Docker and Kubernetes mount them: `MASTER_SECRET_FILE` names the file that contains
 * `MASTER_SECRET`. A file is not shown by `docker inspect` and does not reach child processes.
 */
import { readFileSync } from 'node:fs';
import { ConfigError, type Environment } from './read-setting.ts';

export const SECRET_SETTINGS = [
  'DATABASE_URL',
  'MASTER_SECRET',
  'STRIPE_SECRET_KEY',
  'STRIPE_WEBHOOK_SECRET',
  'TEMPORAL_API_KEY',
  'TEMPORAL_PAYLOAD_KEYS',
  'SMTP_URL',
  'OTEL_EXPORTER_OTLP_HEADERS',
] as const;

/**
 * The environment with secrets in place of the files that contain them. Line breaks at the end are not part of a
 * secret: Kubernetes passes them on when it makes a variable of a secret that was created from a file.
 */
export function withSecretFiles(env: Environment): Environment {
  const complete: Record<string, string | undefined> = { ...env };
  for (const name of SECRET_SETTINGS) {
    const file = env[`${name}_FILE`];
    delete complete[`${name}_FILE`];
    if (!file) continue;
    if (env[name]) throw new ConfigError(`set ${name} or ${name}_FILE, not both`);
    complete[name] = readSecret(`${name}_FILE`, file);
  }
  for (const name of SECRET_SETTINGS) {
    const secret = complete[name];
    if (secret === undefined) continue;
    complete[name] = secret.replace(/[\r\n]+$/, '');
    refuseSpaceAround(name, complete[name]);
  }
  return complete;
}

/** It would be a part of the secret in this process, and perhaps not in another one. */
function refuseSpaceAround(name: string, secret: string): void {
  if (secret === secret.trim()) return;
  throw new ConfigError(`${name} begins or ends with a space or a line break: remove it`);
}

function readSecret(setting: string, file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${setting} names a file that cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (/^[\r\n]*$/.test(text)) throw new ConfigError(`${setting} names an empty file: ${file}`);
  return text;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
