/**
 * Writes the reply of a batch, which is half a megabyte for a thousand members: made into text and sent in slices, so
 * that the event loop serves other requests in between.
 */
import type { Context } from 'koa';
import { mapInSlices, nextSlice } from '../charging/map-in-slices.ts';
import { JSON_TYPE, replyHeaders, type Reply } from './respond.ts';

/** Members that are sent together: about 30 KB. */
const MEMBERS_MAX = 64;

/** The same reply as by `respondJson`, for a body with one member, a list. */
export async function respondInSlices(
  ctx: Context,
  { status, body, headers }: Reply<object, number>,
): Promise<void> {
  const [name, list] = Object.entries(body)[0] as [string, readonly unknown[]];
  const texts = await mapInSlices(list, (member) => JSON.stringify(member));
  const starts = Array.from(
    { length: Math.ceil(texts.length / MEMBERS_MAX) },
    (_, index) => index * MEMBERS_MAX,
  );
  const parts = await mapInSlices(starts, (start) => {
    const opening = start === 0 ? `{${JSON.stringify(name)}:[` : ',';
    const closing = start + MEMBERS_MAX < texts.length ? '' : ']}';
    return Buffer.from(opening + texts.slice(start, start + MEMBERS_MAX).join(',') + closing);
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
