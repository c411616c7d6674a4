/** What comes back: a reply of the API, and an answer as it goes out over HTTP. */

/** A status and what becomes the JSON body. */
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
