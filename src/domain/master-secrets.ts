/** The secrets from which Farebox derives the keys that sign, as the setting MASTER_SECRET lists them. */
export interface MasterSecrets {
  /** The number of the first in the list, which alone signs and encrypts. It is not retired. */
  readonly active: number;
  /** All secrets, by number, in list order. A retired one only reads what the database can also confirm. */
  readonly all: ReadonlyMap<number, string>;
  /** The secrets that are not retired, in the same order. They decide what is valid. */
  readonly trusted: ReadonlyMap<number, string>;
}
