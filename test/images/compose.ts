/** docker-compose.yml and Dockerfile as the tests of the image read them. */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');

export interface ComposeService {
  readonly environment: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly init?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
}

export async function composeServices(): Promise<Readonly<Record<string, ComposeService>>> {
  const file = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8');
  const { services } = parse(file, { merge: true }) as {
    services: Record<string, ComposeService>;
  };
  return services;
}

/** The environment of the service `api`, with made-up values for what .env would hold. */
export async function composeEnvironment(): Promise<Record<string, string>> {
  const { api } = await composeServices();
  const given: Record<string, string> = {
    MASTER_SECRET: randomBytes(32).toString('base64url'),
    STRIPE_SECRET_KEY: `sk_live_${randomBytes(12).toString('hex')}`,
    STRIPE_WEBHOOK_SECRET: `whsec_${randomBytes(12).toString('hex')}`,
    BASE_URL: 'https://farebox.example',
  };
  return Object.fromEntries(
    Object.entries(api?.environment ?? {}).map(([name, value]) => [
      name,
      value.replaceAll(
        /\$\{(\w+)(?::[-?]([^}]*))?\}/g,
        (_, variable: string, fallback: string) => given[variable] ?? fallback,
      ),
    ]),
  );
}
