/** A page of a list, by default newest first. */
export interface Page {
  readonly limit: number;
  /** Rows strictly older than this id. */
  readonly beforeId?: string | undefined;
}
