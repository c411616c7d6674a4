/**
 * Every step says that it is alive while it runs, so that one whose process was killed is taken again
 * elsewhere after the heartbeat timeout. A step that is over sooner says nothing, and so costs nothing more.
 */
import type { Context } from '@temporalio/activity';
import type { ActivityInterceptors } from '@temporalio/worker';

/** The workflows' heartbeat timeouts are 5 s and more. */
const HEARTBEAT_MS = 1_000;

export function beatHearts(context: Context): ActivityInterceptors {
  return {
    inbound: {
      async execute(input, next) {
        const heart = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
        try {
          return await next(input);
        } finally {
          clearInterval(heart);
        }
      },
    },
  };
}
