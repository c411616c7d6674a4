/** `farebox init`: writes a .env for docker-compose.yml, with fresh secrets. An existing .env is never changed. */
import { randomBytes } from 'node:crypto';
import { open, readFile, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { ROOT } from '../root.ts';

const EXAMPLE = join(ROOT, '.env.example');
/** Hex, since they go into URLs. */
const SECRET_BYTES: Readonly<Record<string, number>> = {
  POSTGRES_PASSWORD: 24,
  FAREBOX_POSTGRES_PASSWORD: 24,
  TEMPORAL_POSTGRES_PASSWORD: 24,
  MASTER_SECRET: 32,
};

/** The owner has to add these. Others that are empty are optional. */
const NEEDED = ['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET'];

export function register(command: Command): void {
  command
    .option('--file <path>', 'where to write it', '.env')
    .action(async ({ file }: { file: string }) => {
      const example = await readFile(EXAMPLE, 'utf8');
      const text = example.replaceAll(/^([A-Z_]+)=$/gm, (line, name: string) => {
        const bytes = SECRET_BYTES[name];
        return bytes === undefined ? line : `${name}=${randomBytes(bytes).toString('hex')}`;
      });
      await writeNew(file, text);
      process.stdout.write(
        `Wrote ${file}. Add ${NEEDED.join(' and ')}, and set BASE_URL and PUBLIC_ADDRESS.\n` +
          'To send emails, set SMTP_URL and MAIL_FROM: without a mail server, nobody can sign up.\n',
      );
    });
}

/**
 * Creates the file readable by its owner only, whole or not at all: a part of it would look like one that is
 * in use.
 */
async function writeNew(file: string, text: string): Promise<void> {
  const created = await create(file);
  try {
    await created.writeFile(text);
    await created.sync();
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await created.close();
  }
}

async function create(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Error(
      `${file} already exists and was not changed, because its secrets may be in use`,
      {
        cause: error,
      },
    );
  }
}
