/**
 * The progress display of a start. At a terminal, one line for each part, rewritten in place; elsewhere, a line for
 * each event. After `end`, only plain lines.
 */

export interface Progress {
  /** Shows a part's activity or, with `done`, that it is up. */
  say(part: string, text: string, done?: 'done'): void;
  /** Prints a separate line, at any time. */
  line(text: string): void;
  /** Freezes the display: `say` prints nothing afterwards. */
  end(): void;
}

/** The part of standard output that this needs. */
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
    // A terminal that does not know its size reports 0 columns.
    const width = (out.columns || 80) - 1;
    // A wrapped line would take two rows, and moving the cursor up would miss by one.
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
