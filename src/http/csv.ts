/**
 * Exports: CSV (RFC 4180, UTF-8), written page by page as the client takes it, so that it needs the memory
 * of a page however many rows there are. A cell that a spreadsheet would take for a formula gets a quote
 * before it. Whatever fails on the way breaks the connection: nobody takes a part for the whole.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { stringify, type Options } from 'csv-stringify/sync';
import type { Context } from 'koa';
import { asMicros, decimalOf } from '../domain/money.ts';
import { requestIdOf } from './respond.ts';

/** A bigint is micro-dollars, a number is a count: a minus before these is no formula. */
export type Cell = string | number | bigint;

export interface Export {
  /** Of the file, without its ending. */
  readonly name: string;
  readonly header: readonly string[];
  readonly pages: AsyncIterable<readonly (readonly Cell[])[]>;
}

/** A few milliseconds of work each, as charges wait meanwhile. */
const PAGE_ROWS = 500;

const FORMAT: Options = {
  record_delimiter: '\r\n',
  escape_formulas: true,
  // Any line break, not only our own: without this a lone one would end a row.
  quote_record_delimiter: true,
  cast: { bigint: (micros) => decimalOf(asMicros(Number(micros))) },
};

/** Throws only while nothing is sent; later, `onFailure` is told and the connection is broken. */
export async function respondCsv(
  ctx: Context,
  { name, header, pages }: Export,
  onFailure: (error: unknown) => void,
): Promise<void> {
  const chunks = textOf(header, pages);
  const first = await chunks.next();
  ctx.respond = false;
  ctx.res.writeHead(200, {
    'Content-Type': 'text/csv; charset=utf-8; header=present',
    'Content-Disposition': `attachment; filename="${name}.csv"`,
    'X-Request-Id': requestIdOf(ctx),
  });
  ctx.res.write(first.value ?? '');
  try {
    // By bytes, so that at most one page is read ahead of a slow client.
    await pipeline(Readable.from(chunks, { objectMode: false }), ctx.res);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') onFailure(error);
  }
}

/** The first text has the header, and the first page when there is one. */
async function* textOf(
  header: Export['header'],
  pages: Export['pages'],
): AsyncGenerator<string, undefined> {
  let before = stringify([header], FORMAT);
  for await (const rows of pages) {
    yield before + stringify(rows as Cell[][], FORMAT);
    before = '';
  }
  if (before !== '') yield before;
}

/** A list, each page by a statement of its own: a snapshot held for minutes would keep dead rows alive. */
export async function* pagesOf<T>(
  read: (limit: number, last?: T) => Promise<readonly T[]>,
  cellsOf: (row: T) => readonly Cell[],
): AsyncGenerator<(readonly Cell[])[], void> {
  let last: T | undefined;
  for (;;) {
    const rows = await read(PAGE_ROWS, last);
    if (rows.length > 0) yield rows.map(cellsOf);
    if (rows.length < PAGE_ROWS) return;
    last = rows.at(-1);
  }
}
