/** The partition of a month of `charges` or `holds`. */
import { uuidFloor } from '../../domain/ids.ts';

/** Holds change once or twice, soon after they are placed. The free space keeps the new version on the same page. */
const STORAGE = { charges: '', holds: 'with (fillfactor = 55)' } as const;

export type PartitionedTable = keyof typeof STORAGE;

export interface Month {
  readonly table: PartitionedTable;
  /** The partition's name. */
  readonly name: string;
  readonly fromId: string;
  readonly toId: string;
  /** Storage parameters, as in `create table`. */
  readonly storage: string;
}

/** `timeMs`: any time in the UTC month. */
export function monthPartition(table: PartitionedTable, timeMs: number): Month {
  const time = new Date(timeMs);
  const begin = (ahead: number) => Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + ahead);
  return {
    table,
    name: monthTable(table, timeMs),
    fromId: uuidFloor(begin(0)),
    toId: uuidFloor(begin(1)),
    storage: STORAGE[table],
  };
}

/** The name of a month's table, such as `charges_2025_01`. `timeMs`: any time in the UTC month. */
export function monthTable(prefix: string, timeMs: number): string {
  return `${prefix}_${new Date(timeMs).toISOString().slice(0, 7).replace('-', '_')}`;
}
