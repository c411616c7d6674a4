/** Reads a request's body, up to a limit: as raw bytes, as JSON, or as a form. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../domain/errors.ts';

/** Far more than a request about a single object needs. A row in routes/ that needs more says so. */
export const BODY_BYTES_MAX = 64 * 1024;

/**
 * The whole body as bytes. Rejects with `payload_too_large` as soon as it exceeds `bytesMax`. The rest is read and
 * discarded, so that the client gets to see the response.
 */
export function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let only: Buffer | undefined;
    let chunks: Buffer[] | undefined;
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        chunks = only = undefined;
        reject(new ApiError('payload_too_large', `The body may have at most ${bytesMax} bytes.`));
      } else if (only === undefined) {
        only = chunk;
      } else {
        chunks ??= [only];
        chunks.push(chunk);
      }
    });
    request.on('end', () => resolve(chunks ? Buffer.concat(chunks) : (only ?? Buffer.alloc(0))));
    // The client disconnected midway: not our failure, and nobody is left to receive a response.
    request.on('error', (error) => reject(incomplete(error)));
    // It disconnected before: while its key was looked up, or its account's other work was in progress.
    if (request.destroyed) reject(incomplete(request.errored));
  });
}

function incomplete(cause: unknown): ApiError {
  return new ApiError('invalid_request', 'The body did not arrive completely.', {}, cause);
}

/** The form of one of our pages has a token and a few short fields. */
const FORM_BYTES_MAX = 8 * 1024;

/** The body as the fields of a form. Rejects with 413. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  return new URLSearchParams((await readBody(request, FORM_BYTES_MAX)).toString());
}

/** The announced length; without one, the largest size of a batch. */
export function bodyBytesOf({ headers }: IncomingMessage): number {
  const length = Number(headers['content-length']);
  return Number.isSafeInteger(length) && length > 0 ? length : 1024 * 1024;
}

/** Whether a body is announced. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The body as JSON. Rejects with 415, 413 or 400 `invalid_json`. */
export function readJson(request: IncomingMessage, bytesMax: number): Promise<unknown> {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers;
  if (type !== 'application/json' && !/^application\/json\s*(;|$)/i.test(type ?? '')) {
    throw new ApiError(
      'unsupported_media_type',
      'Send JSON, with the header Content-Type: application/json.',
    );
  }
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ApiError('unsupported_media_type', 'Send the body without Content-Encoding.');
  }
  return readBody(request, bytesMax).then(jsonOf);
}

function jsonOf(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new ApiError('invalid_json', 'The body is not UTF-8 text.');
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new ApiError('invalid_json', 'The body is not valid JSON.');
  }
}
