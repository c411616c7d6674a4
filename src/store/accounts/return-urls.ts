/** The page to which a developer wants people sent back after they topped up through a link in one of its refusals. */
import { Type } from 'typebox';
import { nullable, row, sql, type Connection } from '../database.ts';

const urlRow = row(Type.Object({ url: nullable(Type.String()) }));

/** Null when the developer has registered none, or does not exist. */
export async function findReturnUrl(
  connection: Connection,
  developerId: string,
): Promise<string | null> {
  return connection.maybeOneFirst(sql.type(urlRow)`
    select return_url as url from farebox.accounts where developer_id = ${developerId}
  `);
}

export async function setReturnUrl(
  connection: Connection,
  developerId: string,
  url: string | null,
): Promise<void> {
  await connection.query(sql.typeAlias('nothing')`
    update farebox.accounts set return_url = ${url} where developer_id = ${developerId}
  `);
}
