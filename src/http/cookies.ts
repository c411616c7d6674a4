/** The cookies of a request, by name. */
import type { IncomingMessage } from 'node:http';

export function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const pairs = request.headers.cookie?.split(';') ?? [];
  const found = pairs.map((pair) => pair.trim()).find((pair) => pair.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}
