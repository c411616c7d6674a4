/**
 * The log of a process: JSON lines, on standard output. It never ends or blocks the process: a line that cannot be
 * written, for example because the disk is full, is dropped and counted. The lengths of lines and the bytes
 * of a second are bounded, so neither callers nor an outage can fill the disk quickly. What keeps the output has to
 * delete old lines.
 */
import { writeSync } from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';

const STDOUT = 1;
/** The limit for one member of an error: a stack fits, a request's URL or body does not. */
const TEXT_LENGTH_MAX = 4_000;

/**
 * The most that a process logs in a second. An outage of Postgres under load would write more than a megabyte, and the
 * first lines say it all.
 */
const LOG_BYTES_PER_SECOND = 262_144;
/** What other lines leave free for errors, which are rarer and matter more. */
const BYTES_FOR_ERRORS = LOG_BYTES_PER_SECOND / 2;
/** pino writes the level first. */
const ERROR_LINE = /^\{"level":[56]0,/;

/** `mixin` returns further members of each line. `fd` is where the lines go: standard output unless given. */
export function createLog(
  name: string,
  level: string,
  { mixin, fd = STDOUT }: { mixin?: (() => object) | undefined; fd?: number } = {},
): Logger {
  const options = { name, level, serializers: { err: boundedError }, ...(mixin && { mixin }) };
  return pino(options, lines(fd));
}

/**
 * What callers wrote: `input` of an invalid URL, `raw`, and PostgreSQL's `detail`, which may have an email
 * address or a whole row.
 */
const LEFT_OUT: ReadonlySet<string> = new Set(['input', 'raw', 'detail']);

/** Like pino's serializer, but bounded and without request data. */
function boundedError(error: unknown): unknown {
  const serialized: unknown = pino.stdSerializers.err(error as Error);
  if (typeof serialized !== 'object' || serialized === null) return serialized;
  // Some members are on the prototype.
  const { type, message, stack, code } = serialized as Record<string, unknown>;
  const own = Object.entries(serialized).filter(([key]) => !LEFT_OUT.has(key));
  const members = [...Object.entries({ type, message, stack, code }), ...own];
  return Object.fromEntries(members.map(([key, value]) => [key, bounded(value)]));
}

function bounded(value: unknown): unknown {
  return typeof value === 'string' ? value.slice(0, TEXT_LENGTH_MAX) : value;
}

function lines(fd: number): DestinationStream {
  const hasRoom = roomInSecond();
  let leftOut = 0;
  let dropped = 0;
  /** The end of a line of which a pipe had room for the beginning. */
  let rest = Buffer.alloc(0);
  return {
    write(line) {
      if (!hasRoom(line)) {
        leftOut += 1;
        return;
      }
      const before =
        (leftOut > 0 ? warning({ leftOut }, 'too many log lines in a second') : '') +
        (dropped > 0 ? warning({ dropped }, 'could not write log lines') : '');
      try {
        const text = Buffer.concat([rest, Buffer.from(before + line)]);
        const written = writeSync(fd, text);
        if (written < rest.length) {
          rest = rest.subarray(written);
          dropped += 1;
          return;
        }
        rest = text.subarray(written);
        leftOut = 0;
        dropped = 0;
      } catch {
        dropped += 1;
      }
    },
  };
}

function warning(members: object, msg: string): string {
  return `${JSON.stringify({ level: 40, time: Date.now(), ...members, msg })}\n`;
}

function roomInSecond(): (line: string) => boolean {
  let second = 0;
  let written = 0;
  return (line) => {
    const now = Math.floor(performance.now() / 1_000);
    if (now !== second) written = 0;
    second = now;
    const left = LOG_BYTES_PER_SECOND - written - (ERROR_LINE.test(line) ? 0 : BYTES_FOR_ERRORS);
    if (line.length > left) return false;
    written += line.length;
    return true;
  };
}
