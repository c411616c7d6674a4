/** A reply of the API, and an answer as sent over HTTP. */

/** A status and the value of the JSON body. */
export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function ok(body: unknown): Reply {
  return { status: 200, body };
}
