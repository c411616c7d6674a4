/**
 * Keeps processes with different master secrets from meeting in one database. It stores a fingerprint of each secret,
 * which is derived as keys are, and neither gives the secret away nor signs anything.
 */
import { hkdfSync } from 'node:crypto';
import { Type } from 'typebox';
import type { MasterSecrets } from '../domain/master-secrets.ts';
import { row, sql, type Connection } from './database.ts';

const numberRow = row(Type.Object({ number: Type.Integer() }));

/** The database has been used with another secret of the same number. */
export class MasterSecretError extends Error {
  override readonly name = 'MasterSecretError';

  constructor(number: number) {
    super(
      `MASTER_SECRET: number ${number} is not the secret with which this database has been used. ` +
        'Give every API process and worker the same MASTER_SECRET. A new secret needs a new number: 2:new,1:old. ' +
        'A secret without a number has the number 1.',
    );
  }
}

/**
 * The first process that has a number decides its secret. Throws a MasterSecretError for another one, and
 * records nothing then. Returns a warning for the log when other processes were started with a newer secret.
 */
export async function ensureSameMasterSecrets(
  connection: Connection,
  { all }: MasterSecrets,
): Promise<string[]> {
  // In one order, so that concurrent first starts wait for each other and not in a circle.
  const ordered = [...all].toSorted(([a], [b]) => a - b);
  const given = sql.fragment`
    unnest(
      ${sql.array(
        ordered.map(([number]) => number),
        'int2',
      )},
      ${sql.array(
        ordered.map(([, secret]) => fingerprintOf(secret)),
        'bytea',
      )}
    ) given (number, fingerprint)
  `;
  return connection.transaction(async (tx) => {
    await tx.query(sql.typeAlias('nothing')`
      insert into farebox.master_secrets (number, fingerprint)
      select number, fingerprint from ${given} order by number
      on conflict do nothing
    `);
    const other = await tx.maybeOne(sql.type(numberRow)`
      select number from ${given} join farebox.master_secrets kept using (number)
      where kept.fingerprint <> given.fingerprint
      order by number limit 1
    `);
    if (other) throw new MasterSecretError(other.number);
    // Lower numbers may have been removed. A higher one was not there when this process got its secrets.
    const newer = await tx.anyFirst(sql.type(numberRow)`
      select number from farebox.master_secrets
      where number > ${Math.max(...all.keys())} order by number
    `);
    return newer.map(
      (number) =>
        `MASTER_SECRET: another process was started with secret number ${number}, which this process lacks. ` +
        'Until it is restarted with that secret, this process refuses what the secret signs.',
    );
  });
}

function fingerprintOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'farebox fingerprint of a master secret', 32));
}
