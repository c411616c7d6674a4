/** Keeps the processor's test keys and live keys from meeting in one database. */
import { Type } from 'typebox';
import { row, sql, type Connection } from './database.ts';

const modeRow = row(Type.Object({ isLive: Type.Boolean() }));

/** The database belongs to keys of the other mode. */
export class ProcessorModeError extends Error {
  override readonly name = 'ProcessorModeError';

  constructor(isLive: boolean) {
    const [given, used] = isLive ? ['a live key', 'test keys'] : ['a test key', 'live keys'];
    super(
      `STRIPE_SECRET_KEY is ${given}, and this database has been used with ${used}. ` +
        'Use a database of its own for each mode.',
    );
  }
}

/** The first start decides the mode of a database. Throws a ProcessorModeError in the other mode. */
export async function ensureProcessorMode(connection: Connection, isLive: boolean): Promise<void> {
  // Concurrent first starts wait for each other here, so both read the row that won.
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.processor_mode (is_live) values (${isLive}) on conflict do nothing
  `);
  const mode = await connection.one(sql.type(modeRow)`
    select is_live as "isLive" from farebox.processor_mode
  `);
  if (mode.isLive !== isLive) throw new ProcessorModeError(isLive);
}
