/**
 * Every step sends heartbeats while it runs, so that a step whose process was killed restarts elsewhere after the
 * heartbeat timeout. A step that takes less than a second sends none, so it costs nothing extra.
 */
import { Context } from '@temporalio/activity';
import type { ActivityInterceptors } from '@temporalio/worker';

/** The workflows' heartbeat timeouts are 5 s and more. */
const HEARTBEAT_MS = 1_000;

/** What a step wants to outlive its process. A heartbeat without it would replace it in Temporal. */
const lasting = new WeakMap<Context, unknown>();

/** Hands the details to the workflow if this step's process is killed, and to an operator who looks at the step. */
export function beatWith(details: unknown): void {
  const context = Context.current();
  lasting.set(context, details);
  context.heartbeat(details);
}

export function beatHearts(context: Context): ActivityInterceptors {
  return {
    inbound: {
      async execute(input, next) {
        const heart = setInterval(() => context.heartbeat(lasting.get(context)), HEARTBEAT_MS);
        try {
          return await next(input);
        } finally {
          clearInterval(heart);
        }
      },
    },
  };
}
