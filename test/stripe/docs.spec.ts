/** docs/stripe.md names exactly the events and permissions that Farebox needs. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WEBHOOK_EVENTS } from '../../src/stripe/webhook-events.ts';
import { callsOfFarebox, hiddenUses } from '../conformance/calls-of-farebox.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/stripe.md'), 'utf8');
const READS = /\.(list|retrieve)$/;

function section(title: string): string {
  const [, text = ''] = PAGE.split(`\n## ${title}\n`);
  return text.split('\n## ')[0] ?? '';
}

function codeIn(text: string): string[] {
  return [...text.matchAll(/`([a-zA-Z_.]+)`/g)].map(([, code = '']) => code);
}

describe('the page about Stripe', () => {
  it('lists the events that Farebox acts on', () => {
    const listed = [...section('Events').matchAll(/^- `(.*)`$/gm)].map(([, type]) => type);
    assert.deepEqual(listed, WEBHOOK_EVENTS);
  });

  it('lists a permission for each call to Stripe, with write access only where it is needed', () => {
    const rows = section('Key permissions')
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .slice(2)
      .map((line) => line.split('|').map((cell) => cell.trim()))
      .map(([, resource, access, calls = '']) => ({ resource, access, calls: codeIn(calls) }));
    assert.deepEqual(hiddenUses(), []);
    const listed = rows.flatMap(({ calls }) => calls);
    assert.deepEqual(listed.toSorted(), [...callsOfFarebox()].toSorted());
    for (const { resource, access, calls } of rows) {
      const isReading = calls.every((call) => READS.test(call));
      assert.equal(access, isReading ? 'Read' : 'Write', resource);
    }
  });
});
