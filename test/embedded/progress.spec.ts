/** The output of a start, at a terminal and elsewhere. */
import assert from 'node:assert/strict';
import { createProgress } from '../../src/embedded/progress.ts';

describe('createProgress', () => {
  it('writes a plain line for each event without a terminal', () => {
    const { written, out } = output({ isTTY: false });
    const progress = createProgress(out);
    progress.say('Temporal', 'starting');
    progress.say('Temporal', 'on port 7233', 'done');
    progress.line('done');
    assert.equal(written(), '· Temporal     starting\n✓ Temporal     on port 7233\ndone\n');
  });

  it('shows the latest line of each part at a terminal', () => {
    const { written, out } = output({ isTTY: true });
    const progress = createProgress(out);
    progress.say('PostgreSQL', 'starting');
    progress.say('Temporal', 'starting');
    progress.say('PostgreSQL', '18.4', 'done');
    progress.line('a line between');
    progress.end();
    progress.line('ready');
    assert.deepEqual(screen(written()), [
      'a line between',
      '✓ PostgreSQL   18.4',
      '· Temporal     starting',
      'ready',
    ]);
  });

  it('cuts a line that the terminal would wrap', () => {
    const { written, out } = output({ isTTY: true, columns: 20 });
    createProgress(out).say('Temporal', 'a long line that does not fit');
    assert.equal(screen(written())[0]?.length, 19);
  });

  it('shows the whole line at a terminal that reports a width of 0', () => {
    const { written, out } = output({ isTTY: true, columns: 0 });
    createProgress(out).say('Temporal', 'starting');
    assert.deepEqual(screen(written()), ['· Temporal     starting']);
  });
});

function output(options: { isTTY: boolean; columns?: number }) {
  let text = '';
  return { written: () => text, out: { ...options, write: (part: string) => (text += part) } };
}

/** What a terminal shows after that text, with the three control sequences that progress uses. */
function screen(text: string): string[] {
  const lines: string[] = [];
  let at = 0;
  // oxlint-disable-next-line no-control-regex
  for (const [part, up] of text.matchAll(/\u001b\[(\d+)A|\u001b\[2K|\u001b\[0J|[^\u001b\n]+|\n/g)) {
    if (up) at -= Number(up);
    else if (part === '\u001b[2K') lines[at] = '';
    else if (part === '\u001b[0J') lines.length = at;
    else if (part === '\n') at += 1;
    else lines[at] = (lines[at] ?? '') + part;
  }
  return lines;
}
