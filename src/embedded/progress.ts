/**
 * What is seen of a start: a line for each part, rewritten in place at a terminal; elsewhere a line
 * for each thing that happens. After `end` only plain lines.
 */

export interface Progress {
  /** Says what a part is doing, or with `done` that it is up. */
  say(part: string, text: string, done?: 'done'): void;
  /** A line of its own, at any time. */
  line(text: string): void;
  /** What is shown stays, and `say` says nothing any more. */
  end(): void;
}

/** As much of standard output as this needs. */
interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const NAME_WIDTH = 12;

export function createProgress(out: Output): Progress {
  const shown = new Map<string, string>();
  const rewrites = out.isTTY ?? false;
  let hasEnded = false;

  const draw = (linesAbove: number): void => {
    const up = linesAbove > 0 ? `\u001b[${linesAbove}A` : '';
    const width = (out.columns ?? 80) - 1;
    // A line that the terminal wraps would be two, and going up would miss by one.
    const lines = [...shown.values()].map((line) => `\u001b[2K${line.slice(0, width)}\n`);
    out.write(up + lines.join(''));
  };

  return {
    say(part, text, done) {
      if (hasEnded) return;
      const line = `${done ? '✓' : '·'} ${part.padEnd(NAME_WIDTH)} ${text}`;
      const linesAbove = shown.size;
      shown.set(part, line);
      if (rewrites) draw(linesAbove);
      else out.write(`${line}\n`);
    },
    line(text) {
      const linesAbove = rewrites && !hasEnded ? shown.size : 0;
      if (linesAbove > 0) out.write(`\u001b[${linesAbove}A\u001b[0J`);
      out.write(`${text}\n`);
      if (linesAbove > 0) draw(0);
    },
    end() {
      hasEnded = true;
    },
  };
}
