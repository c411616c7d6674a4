/**
 * Writes the reply of a batch, which is half a megabyte for a thousand members: made into text in slices, so that the
 * event loop serves other requests in between, and sent in one write.
 */
import type { Context } from 'koa';
import { mapInSlices } from '../charging/map-in-slices.ts';
import { JSON_TYPE, respond, type Reply } from './respond.ts';

/** Members that are made into text together: about 30 KB. */
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
  const parts = await mapInSlices(starts, (start) =>
    JSON.stringify(list.slice(start, start + MEMBERS_MAX)).slice(1, -1),
  );
  respond(ctx, status, JSON_TYPE, `{${JSON.stringify(name)}:[${parts.join()}]}`, headers);
}
