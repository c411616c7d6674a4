/** Certificates of authorities of our own, made by openssl in a folder of their own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const DAYS = 2;

export class Certificates {
  readonly #folder = mkdtempSync(join(tmpdir(), 'farebox-tls-'));

  /** The path of `<name>.crt` or `<name>.key`. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  addAuthority(name: string): void {
    const ca = ['-out', `${name}.crt`, '-days', String(DAYS), '-subj', `/CN=${name}`];
    this.#openssl('req', '-x509', ...newKey(name), ...ca);
  }

  /** Signed by the authority `ca`, for the host `subject`. A negative number of days: it has expired. */
  add(name: string, subject: string, days = DAYS): void {
    this.#openssl('req', ...newKey(name), '-out', `${name}.csr`, '-subj', `/CN=${subject}`);
    writeFileSync(this.file(`${name}.ext`), `subjectAltName=DNS:${subject}\n`);
    const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', String(days)];
    const files = ['-in', `${name}.csr`, '-out', `${name}.crt`, '-extfile', `${name}.ext`];
    this.#openssl('x509', '-req', ...by, ...files);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: ['ignore', 'ignore', 'ignore'] });
  }
}

const newKey = (name: string) =>
  ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'].concat([
    '-nodes',
    '-keyout',
    `${name}.key`,
  ]);
