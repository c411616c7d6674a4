/** `npm run schema`: writes migrations/schema.sql from a database that the migrations created. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomPasswords } from '../../src/embedded/data-dir.ts';
import { choosePort } from '../support/ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { dumpSchema } from '../../src/store/doctor/schema-dump.ts';
import { createDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';

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
  const database = await createDatabase(postgres.url, { maxPoolSize: 1, onError: () => {} });
  await writeFile(FILE, await dumpSchema(database));
  await database.end();
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
