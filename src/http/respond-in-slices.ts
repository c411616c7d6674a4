/**
 * Writes the reply of a batch, which is half a megabyte for a thousand members: made into text and sent in slices, so
 * that the event loop serves other requests in between.
 */
import type { Context } from 'koa';
import { mapInSlices, nextSlice } from '../charging/map-in-slices.ts';
import { JSON_TYPE, replyHeaders, type Reply } from './respond.ts';

/** Members that are made into text and sent together: about 30 KB. */
const MEMBERS_MAX = 50;

/** The same reply as by `respondJson`, for a body with one member, a list. */
export async function respondInSlices(
  ctx: Context,
  { status, body, headers }: Reply<object, number>,
): Promise<void> {
  const [name, list] = Object.entries(body)[0] as [string, readonly unknown[]];
  const starts = Array.from(
    { length: Math.ceil(list.length / MEMBERS_MAX) },
    (_, index) => index * MEMBERS_MAX,
  );
  const parts = await mapInSlices(starts, (start) => {
    const opening = start === 0 ? `{${JSON.stringify(name)}:[` : ',';
    const members = JSON.stringify(list.slice(start, start + MEMBERS_MAX)).slice(1, -1);
    const closing = start + MEMBERS_MAX < list.length ? '' : ']}';
    return Buffer.from(opening + members + closing);
  });
  ctx.respond = false;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  ctx.res.writeHead(status, replyHeaders(ctx, JSON_TYPE, length, headers));
  for (const [index, part] of parts.entries()) {
    if (index > 0) await nextSlice();
    // The client may have disconnected since the last slice.
    if (ctx.res.destroyed) return;
    ctx.res.write(part);
  }
  ctx.res.end();
}
