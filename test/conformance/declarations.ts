/**
 * The declarations of the installed `stripe` package as JSON schemas. The package generates them from the OpenAPI
 * description of the API version that it pins, so they are that version's description of every object and parameter:
 * which members exist, which are required, which values an enum has. Read when needed (a few files, 0.2 s),
 * so they cannot be older than the package.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  parseSync,
  type Statement,
  type TSInterfaceDeclaration,
  type TSSignature,
  type TSType,
  type TSTypeAliasDeclaration,
} from 'oxc-parser';

export type Schema = { readonly [keyword: string]: unknown } | boolean;

type Declaration = TSInterfaceDeclaration | TSTypeAliasDeclaration;

/** One `.d.ts`: its declarations by dotted name, and where each imported name comes from. */
interface DeclarationFile {
  readonly path: string;
  readonly declarations: ReadonlyMap<string, Declaration>;
  readonly imports: ReadonlyMap<string, Import>;
  /** The methods of the class that makes the calls. */
  readonly methods: ReadonlyMap<string, Method>;
}

interface Import {
  readonly source: string;
  /** Its name there. */
  readonly name: string;
}

/** Where a type stands: names are looked up from here. */
interface Place {
  readonly file: DeclarationFile;
  /** `Dispute.Evidence`; empty outside of every declaration. */
  readonly name: string;
}

interface Named extends Place {
  readonly declaration: Declaration;
}

/** A call that the package offers. */
interface Method {
  /** Undefined for a call without parameters. */
  readonly params: TSType | undefined;
  readonly answer: TSType;
}

const EMPTY: Schema = { type: 'object', properties: {}, additionalProperties: false };

const PACKAGE = dirname(fileURLToPath(import.meta.resolve('stripe')));

export class Declarations {
  /** Grows as types are asked for. A schema refers to the others by their names here. */
  readonly definitions: Record<string, Schema> = {};
  readonly #files = new Map<string, DeclarationFile>();
  readonly #keptObjects: ReadonlySet<string>;
  readonly #leftOut: ReadonlySet<string>;

  /**
   * Fields that can be expanded to an object outside of `keptObjects` (values of `object`) are taken for ids.
   * Details of other types of payment methods than `keptTypes` are taken for unknown, which leaves a third of
   * the description.
   */
  constructor(keptObjects: readonly string[], keptTypes: readonly string[]) {
    this.#keptObjects = new Set(keptObjects);
    const { file, declaration } = this.#getNamed(
      this.#read(join(PACKAGE, 'resources/PaymentMethods.d.ts')),
      'PaymentMethod.Type',
    );
    assert.ok(declaration.type === 'TSTypeAliasDeclaration', file.path);
    assert.ok(declaration.typeAnnotation.type === 'TSUnionType', file.path);
    const types = declaration.typeAnnotation.types.flatMap(literalsOf);
    this.#leftOut = new Set(types.filter((type) => !keptTypes.includes(type)));
  }

  /** `file` is relative to the package's modules: `resources/Disputes`. */
  schemaOf(file: string, name: string): Schema {
    return this.#reference(this.#getNamed(this.#read(join(PACKAGE, `${file}.d.ts`)), name));
  }

  /** What a method of the package sends and what Stripe answers: `create` of `resources/Disputes`. */
  methodOf(file: string, method: string): { readonly params: Schema; readonly answer: Schema } {
    const declarations = this.#read(join(PACKAGE, `${file}.d.ts`));
    const found = declarations.methods.get(method);
    assert.ok(found, `${file} has no method ${method}`);
    const owner = { file: declarations, name: '' };
    return {
      params: found.params ? this.#schemaOfType(owner, found.params) : EMPTY,
      answer: this.#schemaOfType(owner, found.answer),
    };
  }

  #read(path: string): DeclarationFile {
    const known = this.#files.get(path);
    if (known) return known;
    const { program } = parseSync(path, readFileSync(path, 'utf8'));
    const declarations = new Map<string, Declaration>();
    const imports = new Map<string, Import>();
    for (const statement of program.body) {
      collect(statement, '', declarations);
      if (
        statement.type !== 'ImportDeclaration' &&
        (statement.type !== 'ExportNamedDeclaration' || !statement.source)
      ) {
        continue;
      }
      const source = join(dirname(path), statement.source!.value.replace(/\.js$/, '.d.ts'));
      for (const specifier of statement.specifiers) {
        const local = dotted(specifier.local);
        const name = specifier.type === 'ImportSpecifier' ? dotted(specifier.imported) : local;
        imports.set(local, { source, name });
      }
    }
    const file = { path, declarations, imports, methods: methodsIn(program.body) };
    this.#files.set(path, file);
    return file;
  }

  #getNamed(file: DeclarationFile, name: string): Named {
    const found = this.#find(file, '', name);
    assert.ok(found, `${name} is not declared in ${file.path}`);
    return found;
  }

  /** Looks in the namespace first, then in those around it, then among the imports. */
  #find(file: DeclarationFile, scope: string, name: string): Named | undefined {
    for (let around = scope; ; around = around.slice(0, Math.max(0, around.lastIndexOf('.')))) {
      const full = around === '' ? name : `${around}.${name}`;
      const declaration = file.declarations.get(full);
      if (declaration) return { file, name: full, declaration };
      if (around === '') break;
    }
    const [first = '', ...rest] = name.split('.');
    const imported = file.imports.get(first);
    if (!imported) return undefined;
    const source = this.#read(imported.source);
    // `Checkout.Session` is `Session` in the file that `Checkout` stands for.
    return (
      this.#find(source, '', [imported.name, ...rest].join('.')) ??
      (rest.length > 0 ? this.#find(source, '', rest.join('.')) : undefined)
    );
  }

  #reference(named: Named): Schema {
    const key =
      `${named.file.path.slice(PACKAGE.length + 1, -'.d.ts'.length)}.${named.name}`.replaceAll(
        '/',
        '.',
      );
    if (!(key in this.definitions)) {
      this.definitions[key] = true; // Ends the recursion of types that contain themselves.
      this.definitions[key] = this.#schemaOfDeclaration(named);
    }
    return { $ref: key };
  }

  #schemaOfDeclaration(named: Named): Schema {
    const { declaration } = named;
    if (declaration.type === 'TSTypeAliasDeclaration') {
      return this.#schemaOfType(named, declaration.typeAnnotation);
    }
    return this.#closed(this.#membersOf(named));
  }

  #closed(members: ReadonlyMap<string, Member>): Schema {
    const properties: Record<string, Schema> = {};
    for (const [name, member] of members) {
      const isLeftOut = this.#leftOut.has(name) && !member.isRequired;
      if (name !== '*' && !isLeftOut)
        properties[name] = this.#schemaOfType(member.owner, member.type);
    }
    const any = members.get('*');
    return {
      type: 'object',
      properties,
      required: [...members].filter(([, { isRequired }]) => isRequired).map(([name]) => name),
      additionalProperties: any ? this.#schemaOfType(any.owner, any.type) : false,
    };
  }

  /** Own members replace inherited ones. */
  #membersOf(named: Named): Map<string, Member> {
    const members = new Map<string, Member>();
    const { declaration } = named;
    assert.equal(declaration.type, 'TSInterfaceDeclaration', named.name);
    const { extends: parents, body } = declaration;
    for (const { expression } of parents) {
      const parent = this.#find(named.file, named.name, dotted(expression));
      assert.ok(parent, `${dotted(expression)} is not declared`);
      for (const [name, member] of this.#membersOf(parent)) members.set(name, member);
    }
    for (const signature of body.body) addMember(members, named, signature);
    return members;
  }

  #schemaOfType(owner: Place, type: TSType): Schema {
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- a new kind throws
    switch (type.type) {
      case 'TSStringKeyword':
        return { type: 'string' };
      case 'TSNumberKeyword':
        return { type: 'number' };
      case 'TSBooleanKeyword':
        return { type: 'boolean' };
      case 'TSNullKeyword':
        return { type: 'null' };
      case 'TSUnknownKeyword':
        return true;
      case 'TSNeverKeyword':
      case 'TSVoidKeyword':
        return false;
      case 'TSLiteralType':
        assert.equal(type.literal.type, 'Literal');
        return { const: (type.literal as { value: unknown }).value };
      case 'TSArrayType':
        return { type: 'array', items: this.#schemaOfType(owner, type.elementType) };
      case 'TSParenthesizedType':
        return this.#schemaOfType(owner, type.typeAnnotation);
      case 'TSTypeLiteral': {
        const members = new Map<string, Member>();
        for (const signature of type.members) addMember(members, owner, signature);
        return this.#closed(members);
      }
      case 'TSUnionType':
        return this.#union(type.types.map((each) => this.#schemaOfType(owner, each)));
      case 'TSTypeReference':
        return this.#schemaOfReference(owner, type);
      default:
        throw new TypeError(`${type.type} in ${owner.name} has no schema yet`);
    }
  }

  #schemaOfReference(owner: Place, type: Extract<TSType, { type: 'TSTypeReference' }>): Schema {
    const name = dotted(type.typeName);
    const [first] = (type.typeArguments?.params ?? []) as [TSType?];
    if (first && name === 'Array') {
      return { type: 'array', items: this.#schemaOfType(owner, first) };
    }
    if (first && name === 'Emptyable') {
      return this.#union([{ type: 'null' }, { const: '' }, this.#schemaOfType(owner, first)]);
    }
    if (first && (name === 'Promise' || name === 'Response')) {
      return this.#schemaOfType(owner, first);
    }
    if (first && (name === 'ApiList' || name === 'ApiListPromise')) {
      return listOf(this.#schemaOfType(owner, first));
    }
    if (first && name === 'Partial') return this.#partial(owner, first);
    // Values that a later release of the same API version may add. They are no excuse for a value that we made up.
    if (name === 'OtherString') return false;
    if (name === 'Decimal') return { type: 'string', pattern: '^-?[0-9.]+$' };
    const named = this.#find(owner.file, owner.name, name);
    assert.ok(named, `${name} is not declared for ${owner.name} in ${owner.file.path}`);
    if (!this.#isKept(named)) return false;
    return this.#reference(named);
  }

  #partial(owner: Place, type: TSType): Schema {
    assert.equal(type.type, 'TSTypeReference');
    const schema = this.#schemaOfType(owner, type);
    const key = typeof schema === 'boolean' ? undefined : String(schema['$ref']);
    const definition = key === undefined ? undefined : this.definitions[key];
    if (typeof definition !== 'object') return schema;
    return { ...definition, required: [] };
  }

  /** Whether it is one of our objects, or no object of the API at all: a part of one, or a parameter. */
  #isKept({ name, declaration }: Named): boolean {
    if (declaration.type !== 'TSInterfaceDeclaration' || name.includes('.Deleted')) return true;
    const objectName = declaration.body.body.flatMap((signature) =>
      signature.type === 'TSPropertySignature' && nameOf(signature) === 'object'
        ? literalsOf(signature.typeAnnotation?.typeAnnotation)
        : [],
    )[0];
    return objectName === undefined || this.#keptObjects.has(objectName);
  }

  /** Alternatives that cannot occur here disappear. */
  #union(alternatives: readonly Schema[]): Schema {
    const possible = alternatives.filter((each) => each !== false);
    const literals = possible.flatMap((each) =>
      typeof each === 'object' && 'const' in each ? [each['const']] : [],
    );
    const others = possible.filter((each) => typeof each !== 'object' || !('const' in each));
    if (others.length === 0) return literals.length === 0 ? false : { enum: literals };
    const all = literals.length === 0 ? others : [{ enum: literals }, ...others];
    return all.length === 1 ? all[0]! : { anyOf: all };
  }
}

interface Member {
  readonly owner: Place;
  readonly type: TSType;
  readonly isRequired: boolean;
}

function addMember(members: Map<string, Member>, owner: Place, signature: TSSignature): void {
  if (signature.type === 'TSIndexSignature') {
    const type = signature.typeAnnotation.typeAnnotation;
    members.set('*', { owner, type, isRequired: false });
    return;
  }
  assert.equal(signature.type, 'TSPropertySignature', owner.name);
  const property = signature;
  const type = property.typeAnnotation?.typeAnnotation;
  assert.ok(type);
  members.set(nameOf(property), { owner, type, isRequired: !property.optional });
}

function nameOf({ key }: Extract<TSSignature, { type: 'TSPropertySignature' }>): string {
  if (key.type === 'Identifier') return key.name;
  assert.equal(key.type, 'Literal');
  return String((key as { value: unknown }).value);
}

function literalsOf(type: TSType | undefined): string[] {
  return type?.type === 'TSLiteralType' && type.literal.type === 'Literal'
    ? [String(type.literal.value)]
    : [];
}

function methodsIn(statements: readonly Statement[]): ReadonlyMap<string, Method> {
  const methods = new Map<string, Method>();
  for (const statement of statements) {
    const declared = statement.type === 'ExportNamedDeclaration' && statement.declaration;
    if (!declared || declared.type !== 'ClassDeclaration') continue;
    for (const member of declared.body.body) {
      if (member.type !== 'MethodDefinition' && member.type !== 'TSAbstractMethodDefinition')
        continue;
      const { params, returnType } = member.value;
      const named = params.find((each) => each.type === 'Identifier' && each.name === 'params');
      if (!returnType || member.key.type !== 'Identifier') continue;
      methods.set(member.key.name, {
        params: named?.type === 'Identifier' ? named.typeAnnotation?.typeAnnotation : undefined,
        answer: returnType.typeAnnotation,
      });
    }
  }
  return methods;
}

function collect(statement: Statement, scope: string, into: Map<string, Declaration>): void {
  const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
  if (!declared) return;
  if (declared.type === 'TSInterfaceDeclaration' || declared.type === 'TSTypeAliasDeclaration') {
    into.set(`${scope}${declared.id.name}`, declared);
  }
  if (declared.type === 'TSModuleDeclaration' && declared.body) {
    const inner = `${scope}${dotted(declared.id)}.`;
    for (const each of declared.body.body) collect(each, inner, into);
  }
}

interface DottedNode {
  readonly type: string;
  readonly name?: unknown;
  readonly left?: unknown;
  readonly right?: unknown;
  readonly object?: unknown;
  readonly property?: unknown;
}

/** `Dispute.Evidence` of an identifier, a qualified name or a member expression. */
function dotted(node: unknown): string {
  const { type, name, left, right, object, property } = node as DottedNode;
  if (type === 'Identifier') return String(name);
  if (type === 'TSQualifiedName') return `${dotted(left)}.${dotted(right)}`;
  assert.equal(type, 'MemberExpression');
  return `${dotted(object)}.${dotted(property)}`;
}

export function listOf(items: Schema): Schema {
  return {
    type: 'object',
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items },
      has_more: { type: 'boolean' },
      url: { type: 'string', pattern: '^/v1/' },
    },
    required: ['object', 'data', 'has_more', 'url'],
    additionalProperties: false,
  };
}
