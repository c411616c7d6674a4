/**
 * The log of a process: JSON lines on standard output. It never ends or blocks the process: a line that cannot be
 * written, for example because the disk is full, is dropped and counted. Line lengths are bounded, so callers cannot
 * fill the log.
 */
import { writeSync } from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';

const STDOUT = 1;
/** The limit for one member of an error: a stack fits, a request's URL or body does not. */
const TEXT_LENGTH_MAX = 4_000;

/** `mixin` returns further members of each line. */
export function createLog(name: string, level: string, mixin?: () => object): Logger {
  const options = { name, level, serializers: { err: boundedError }, ...(mixin && { mixin }) };
  return pino(options, lines(STDOUT));
}

/** Like pino's serializer, but bounded and without request data (such as `input` of an invalid URL). */
function boundedError(error: unknown): unknown {
  const serialized: unknown = pino.stdSerializers.err(error as Error);
  if (typeof serialized !== 'object' || serialized === null) return serialized;
  // Some members are on the prototype.
  const { type, message, stack, code } = serialized as Record<string, unknown>;
  const own = Object.entries(serialized).filter(([key]) => key !== 'input' && key !== 'raw');
  const members = [...Object.entries({ type, message, stack, code }), ...own];
  return Object.fromEntries(members.map(([key, value]) => [key, bounded(value)]));
}

function bounded(value: unknown): unknown {
  return typeof value === 'string' ? value.slice(0, TEXT_LENGTH_MAX) : value;
}

function lines(fd: number): DestinationStream {
  let dropped = 0;
  return {
    write(line) {
      const lost = { level: 40, time: Date.now(), dropped, msg: 'could not write log lines' };
      const text = dropped > 0 ? `${JSON.stringify(lost)}\n${line}` : line;
      try {
        writeSync(fd, text);
        dropped = 0;
      } catch {
        dropped += 1;
      }
    },
  };
}
