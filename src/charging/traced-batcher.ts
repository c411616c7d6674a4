/**
 * A batcher whose flushes are spans. A flush belongs to the trace of its first recorded request and links the
 * others, and each of those links the flush: so every charge's trace leads to the statement that decided it.
 */
import {
  currentContext,
  isRecorded,
  spanOf,
  type Context,
  type Span,
  type Tracing,
} from '../tracing/tracing.ts';
import { Batcher, type Batchable, type BatcherOptions, type Requester } from './batcher.ts';

type Statement<Draft, Result> = (drafts: readonly Draft[], onSent: () => void) => Promise<Result>;

/** `name` is that of the spans, such as `flush charges`. */
export function createTracedBatcher<Draft extends Batchable, Outcome>(
  options: BatcherOptions<Draft, Outcome>,
  name: string,
  tracing: Tracing,
): Batcher<Draft, Outcome> {
  const requests = new WeakMap<Draft, Context>();
  const traced =
    <Result>(step: string, statement: Statement<Draft, Result>): Statement<Draft, Result> =>
    (drafts, onSent) => {
      const contexts = drafts.flatMap((draft) => requests.get(draft) ?? []);
      const parent = contexts.find(isRecorded) ?? contexts[0] ?? currentContext();
      const others = recordedSpans(contexts).filter((span) => span !== spanOf(parent));
      return tracing.inSpan(
        name,
        {
          parent,
          links: others.map((span) => ({ context: span.spanContext() })),
          attributes: { 'farebox.batch.size': drafts.length, 'farebox.batch.step': step },
        },
        (flush) => {
          for (const span of others) span.addLink({ context: flush.spanContext() });
          return statement(drafts, onSent);
        },
      );
    };
  return new NotingBatcher(
    {
      ...options,
      execute: traced('execute', options.execute),
      decide: traced('decide', options.decide),
    },
    (draft) => void requests.set(draft, currentContext()),
  );
}

/** A request may have several charges in a flush. */
function recordedSpans(contexts: readonly Context[]): Span[] {
  return [...new Set(contexts.filter(isRecorded).flatMap((each) => spanOf(each) ?? []))];
}

class NotingBatcher<Draft extends Batchable, Outcome> extends Batcher<Draft, Outcome> {
  readonly #note: (draft: Draft) => void;

  constructor(options: BatcherOptions<Draft, Outcome>, note: (draft: Draft) => void) {
    super(options);
    this.#note = note;
  }

  override post(draft: Draft, requester: Requester): Promise<Outcome> {
    this.#note(draft);
    return super.post(draft, requester);
  }
}
