/**
 * docs/webhooks.md: its table lists every type of event, each once, and no other. docs/events.md: the
 * examples are events.
 */
import assert from 'node:assert/strict';
import { EVENT_TYPES } from '../../src/domain/events.ts';
import type { ExampleEvent } from '../../src/http/openapi/event-examples.ts';
import { EVENT_DATA } from '../../src/schemas/events.ts';
import { assertShape } from '../support/contract.ts';
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

describe('docs/events.md', () => {
  const blocks = [...read('docs/events.md').matchAll(/^## (.+)\n\n(.+)\n\n```json\n([^`]+)```$/gm)];
  const examples = blocks.map(([, type, , json = '']) => ({
    title: type,
    example: JSON.parse(json) as ExampleEvent,
  }));

  it('has an example of every type of event, with the members of its schema', () => {
    assert.deepEqual(
      examples.map(({ title }) => title),
      [...EVENT_TYPES],
    );
    for (const { title, example } of examples) {
      assert.equal(example.type, title);
      assertShape(example.data, EVENT_DATA[example.type]);
    }
  });

  it('shows each state as the type of its event names it', () => {
    for (const { example } of examples) {
      const { status } = example.data as { status?: string };
      if (status !== undefined) assert.equal(example.type.split('.')[1], status);
    }
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
