/** More than one restore, with the commands of docs/restore.md: each has what the archive has until its moment. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import {
  startRestorablePostgres,
  type RestorablePostgres,
} from '../support/restorable-postgres.ts';

describe('a database that is restored again', () => {
  let postgres: RestorablePostgres;

  beforeEach(async () => {
    postgres = await startRestorablePostgres();
    await query('create table notes (note text)');
    await postgres.backUp();
  });
  afterEach(() => postgres?.remove());

  it('has what was committed until a later moment, from the same backup', async () => {
    await write('first');
    const tooEarly = await postgres.moment();
    await write('second');
    const late = await postgres.moment();
    await write('damage');
    await postgres.restoreTo(tooEarly);
    assert.deepEqual(await notes(), ['first']);
    await postgres.restoreTo(late);
    assert.deepEqual(await notes(), ['first', 'second']);
  });

  it('has all of the archive, from a backup that has the settings of an earlier restore', async () => {
    await restoreBeforeDamage();
    await postgres.backUp();
    await write('later');
    await postgres.restoreTo();
    assert.deepEqual(await notes(), ['first', 'later']);
  });

  it('has no settings of the restore once they are reset', async () => {
    await restoreBeforeDamage();
    assert.match(await postgres.restoreSettings(), /restore_command, recovery_target_time/);
    await postgres.resetRestoreSettings();
    assert.equal(await postgres.restoreSettings(), '');
  });

  async function restoreBeforeDamage(): Promise<void> {
    await write('first');
    const moment = await postgres.moment();
    await write('damage');
    await postgres.restoreTo(moment);
    assert.deepEqual(await notes(), ['first']);
  }

  const write = (note: string) => query('insert into notes values ($1)', [note]);
  const notes = async () => (await query('select note from notes')).map(({ note }) => note);

  async function query(text: string, values: string[] = []): Promise<{ note: string }[]> {
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    try {
      return (await client.query<{ note: string }>(text, values)).rows;
    } finally {
      await client.end();
    }
  }
});
