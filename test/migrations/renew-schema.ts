/** `npm run schema`: writes migrations/schema.sql anew, from a database that the migrations made. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { randomPasswords } from '../../src/embedded/data-dir.ts';
import { choosePort } from '../../src/embedded/ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { migrate } from '../../src/store/migrations.ts';
import { dumpSchema } from './schema-dump.ts';

const FILE = join(import.meta.dirname, '../../migrations/schema.sql');

const folder = await mkdtemp(join(tmpdir(), 'farebox-schema-'));
const postgres = await startPostgres({
  dataDir: join(folder, 'postgres'),
  logFile: join(folder, 'postgres.log'),
  env: process.env,
  port: await choosePort(),
  passwords: randomPasswords(),
});
try {
  await migrate(postgres.url);
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  await writeFile(FILE, await dumpSchema(client));
  await client.end();
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
