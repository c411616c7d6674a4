/** docs/webhooks.md: its table lists every type of event, each once, and no other. */
import assert from 'node:assert/strict';
import { EVENT_TYPES } from '../../src/domain/events.ts';
import { read } from './sources.ts';

describe('docs/webhooks.md', () => {
  it('lists every type of event once', () => {
    const [, table = ''] =
      /\n\| Types +\|[^\n]*\n((?:\|[^\n]*\n)+)/.exec(read('docs/webhooks.md')) ?? [];
    const listed = table
      .split('\n')
      .slice(1)
      .flatMap((line) => typesOf(line.split('|')[1] ?? ''));
    assert.deepEqual(listed.toSorted(), [...EVENT_TYPES].toSorted());
  });
});

/** `refund.made`, `.failed` in a cell are two types of refunds. */
function typesOf(cell: string): string[] {
  let noun = '';
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => {
    if (name.startsWith('.')) return noun + name;
    noun = name.slice(0, name.lastIndexOf('.'));
    return name;
  });
}
