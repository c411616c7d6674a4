/**
 * Every step sends heartbeats while it runs, so that a step whose process was killed restarts elsewhere after the
 * heartbeat timeout. A step that takes less than a second sends none, so it costs nothing extra.
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
