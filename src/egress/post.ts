/**
 * A guarded POST to an address that somebody gave us: public addresses only, checked as the connection is made, no
 * redirects, a deadline, and of the answer only the beginning.
 */
import type { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { createConnector } from './connector.ts';
import type { LookupAll } from './resolve-names.ts';
import { webhookProblem } from './endpoints.ts';
import { faultOf, retryAfterMsOf } from './guarded-fetch.ts';

export interface Poster {
  post(url: string, message: Message): Promise<Posted>;
  close(): Promise<void>;
}

/** After this, the rest of a body is given up: the status is known, and a slow body must not occupy the caller. */
const BODY_MS_MAX = 1_000;

interface Message {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Posted =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** The first characters of the answer, printable in Postgres. */
      readonly beginning: string;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: 'failed'; readonly reason: string };

export interface PosterOptions {
  /** Allows loopback and private networks, and `http` to loopback: for development. */
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  readonly charactersMax: number;
  readonly resolve?: LookupAll;
}

/** Its connections serve one receiver and are kept until it is closed. */
export function openPoster(options: PosterOptions): Poster {
  const agent = new Agent({ connect: createConnector(options), headersTimeout: 0, bodyTimeout: 0 });
  return {
    post: async (url, message) => {
      const problem = webhookProblem(url, options);
      if (problem) return { kind: 'failed', reason: `The URL ${problem}` };
      try {
        return await posted(agent, url, message, options);
      } catch (error) {
        return { kind: 'failed', reason: faultOf(error).message };
      }
    },
    close: () => agent.destroy(),
  };
}

async function posted(
  agent: Agent,
  url: string,
  { headers, body }: Message,
  { timeoutMs, charactersMax }: PosterOptions,
): Promise<Posted> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await request(url, { method: 'POST', headers, body, dispatcher: agent, signal });
  const retryAfter = answer.headers['retry-after'];
  return {
    kind: 'answered',
    status: answer.statusCode,
    beginning: await beginningOf(answer.body, charactersMax),
    retryAfterMs: typeof retryAfter === 'string' ? retryAfterMsOf(retryAfter) : undefined,
  };
}

/** The status says whether it arrived, so a body that is cut off or never ends is no failure. */
async function beginningOf(body: Readable, charactersMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  const timer = setTimeout(() => body.destroy(), BODY_MS_MAX);
  try {
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length >= charactersMax) break; // ends the connection
    }
  } catch {
    // What was read is kept.
  } finally {
    clearTimeout(timer);
  }
  return text.slice(0, charactersMax).toWellFormed().replaceAll('\0', '\u{FFFD}');
}
