import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = join(ROOT, 'docs', 'reference.md')
const UMBRELLA = join(ROOT, 'packages', 'durably', 'src')
const CLUSTER = '../../cluster/src'
const CORE = join(ROOT, 'packages', 'core', 'src')

/** By the call that takes them: the entry that exports the type, and the type. */
const OPTIONS = [
  ['createDurably(options)', 'create-durably.ts', 'DatabaseOptions'],
  ['defineJob(options, fn)', 'index.ts', 'JobOptions'],
  ['retry, of a job or a step', 'index.ts', 'RetryPolicy'],
  ['delay of a retry, when it grows', 'index.ts', 'GrowingDelay'],
  ['rateLimit of a job', 'index.ts', 'RateLimit'],
  ['placement of a job', 'index.ts', 'PlacementOptions'],
  ['continuation of a job', 'index.ts', 'ContinuationOptions'],
  ['job.trigger(payload, options)', 'index.ts', 'TriggerOptions'],
  ['job.triggerAndWait(payload, options), job.wait(id, options): the same, and', 'index.ts', 'WaitOptions'],
  ['ctx.run(name, options, body)', 'index.ts', 'RunStepOptions'],
  ['ctx.transaction(name, options, body)', 'index.ts', 'TransactionOptions'],
  ['ctx.stream(name, options, body)', 'index.ts', 'StreamOptions'],
  ['ctx.waitFor(name, options)', 'index.ts', 'WaitForOptions'],
  ['durably.stop(options)', 'index.ts', 'StopOptions'],
  ['durably.runUntilIdle(options)', 'index.ts', 'DrainOptions'],
  ['durably.getRuns(filter)', 'index.ts', 'RunFilter'],
  ['durably.getEvents(id, page), durably.getLogs(id, page)', 'index.ts', 'PageOptions'],
  ['durably.subscribe(id, options)', 'index.ts', 'SubscribeOptions'],
  ['durably.signal(id, name, payload, options)', 'index.ts', 'SignalOptions'],
  ['durably.fork(id, options)', 'index.ts', 'ForkOptions'],
  ['durably.getStatistics(filter)', 'index.ts', 'StatisticsFilter'],
  ['durably.counts(filter): as getRuns(), and', 'index.ts', 'CountFilter'],
  ['durably.purge(options)', 'index.ts', 'PurgeOptions'],
  ['durably.getAudit(filter)', 'index.ts', 'AuditFilter'],
  ['durably.purgeAudit(options)', 'index.ts', 'AuditPurge'],
  ['options of cancel, retry, unpark, failParked, deleteRun, settings.set', 'index.ts', 'CommandOptions'],
  ['durably.settings', 'index.ts', 'SettingValues'],
  ['durably.recover(options)', 'index.ts', 'RecoverOptions'],
  ['A plugin, for durably.use(plugin)', 'index.ts', 'Plugin'],
  ['records of a plugin, include of withLogPersistence()', 'plugins.ts', 'RecordedHistory'],
  ['withLogPersistence(options)', 'plugins.ts', 'LogPersistenceOptions'],
  ['withLogRetention(options)', 'plugins.ts', 'LogRetentionOptions'],
  ['withRetention(options)', 'plugins.ts', 'RetentionOptions'],
  ['withStatistics(options)', 'plugins.ts', 'StatisticsOptions'],
  ['withTabLeader(options)', 'plugins.ts', 'TabLeaderOptions'],
  ['withTelemetry(options)', 'telemetry.ts', 'TelemetryOptions'],
  ['createTaskQueue(options)', 'create-task-queue.ts', 'DatabaseQueueOptions'],
  ['keep of a queue, for each state', 'queue.ts', 'KeepLimits'],
  ['queue.register(type, options, handler)', 'queue.ts', 'TaskOptions'],
  ['queue.enqueue(type, payload, options)', 'queue.ts', 'EnqueueOptions'],
  ['queue.list(filter)', 'queue.ts', 'TaskFilter'],
  ['queue.purge(options)', 'queue.ts', 'TaskPurge'],
  ['createScheduler(durably, options)', `${CLUSTER}/index.ts`, 'SchedulerOptions'],
  ['schedules.define(name, options), schedules.create(name, options)', `${CLUSTER}/index.ts`, 'ScheduleOptions'],
  ['schedules.update(name, changes)', `${CLUSTER}/index.ts`, 'ScheduleUpdate'],
  ['schedules.list(filter)', `${CLUSTER}/index.ts`, 'ScheduleFilter'],
  ['schedules.backfill(name, options)', `${CLUSTER}/index.ts`, 'BackfillOptions'],
  ['durably.publish(message)', 'index.ts', 'Message'],
  ['on of a job, when it is chosen by payload', 'index.ts', 'MessageWish'],
  ['debounce of a job, with a key', 'index.ts', 'DebounceOptions'],
  ['debounce of a trigger, with a key', 'index.ts', 'TriggerDebounce'],
  ['batch of a trigger', 'index.ts', 'TriggerBatch'],
  ['batch of a job', 'index.ts', 'BatchOptions'],
  ['createInbox(durably, options)', `${CLUSTER}/index.ts`, 'InboxOptions'],
  ['createCluster(durably, options)', `${CLUSTER}/index.ts`, 'ClusterOptions'],
  ['inbox.replay(filter), inbox.list(filter): the same, limit and after', `${CLUSTER}/index.ts`, 'MessageFilter'],
  ['inbox.purge(options)', `${CLUSTER}/index.ts`, 'MessagePurgeOptions'],
  ['libsql(config)', 'libsql.ts', 'LibsqlConfig'],
  ['betterSqlite3(config)', 'better-sqlite3.ts', 'BetterSqlite3Config'],
  ['sqlocal(config)', 'sqlocal.ts', 'SqlocalConfig'],
  ['postgres(config)', 'postgres.ts', 'PostgresConfig'],
  ['createMemoryStorage(options)', 'index.ts', 'MemoryStorageOptions'],
  ['createTestDurably(options)', 'testing.ts', 'TestDurablyOptions'],
]

const EVENTS = [
  ['Of runs, steps and workers: durably.on(type, listener)', join(CORE, 'job', 'events.ts')],
  ['Of tasks: queue.on(type, listener)', join(CORE, 'queue', 'task-events.ts')],
]

const ERRORS = [
  ['', ...['durably-error.ts', 'errors.ts', 'storage-errors.ts'].map((file) => join(CORE, 'base', file))],
  ['Of a task queue', ...['handlers.ts', 'queue-switch.ts'].map((file) => join(CORE, 'queue', file))],
  ['Of createTestDurably()', join(CORE, 'testing', 'jobs', 'errors.ts')],
]

const program = createProgram()
const checker = program.getTypeChecker()
/** What has no doc comment, and should have one. */
const missing = []

function createProgram() {
  const files = [...new Set(OPTIONS.map(([, file]) => join(UMBRELLA, file)))]
  return ts.createProgram([...files, ...EVENTS.map(([, file]) => file), ...ERRORS.flatMap(([, ...files]) => files)], {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    customConditions: ['@coji/durably-source'],
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    types: [],
    noResolve: false,
  })
}

function original(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function exported(file, name) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(file))
  const symbol = checker.getExportsOfModule(module).find((each) => each.name === name)
  if (symbol === undefined) throw new Error(`${file} exports no ${name}.`)
  return original(symbol)
}

function isOurs(node) {
  return node.getSourceFile().fileName.startsWith(join(ROOT, 'packages'))
}

function docOf(symbol, what) {
  const own = ts.displayPartsToString(symbol.getDocumentationComment(checker))
  // A form that has one member alone is described as a whole.
  const form = symbol.declarations?.[0]?.parent
  const text = (own === '' && form?.parent?.types !== undefined ? commentBefore(form) : own)
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (text === '') missing.push(what)
  return text
}

/** The text of a comment that stands before a node without a symbol, such as a member of a union, and before its `|`. */
function commentBefore(node) {
  const siblings = node.parent.types ?? []
  const start = siblings[siblings.indexOf(node) - 1]?.end ?? node.parent.getFullStart()
  const comments = node
    .getSourceFile()
    .text.slice(start, node.getStart())
    .match(/\/\*\*.*?\*\//gs)
  const lines = (comments?.at(-1) ?? '')
    .replace(/^\/\*\*/, '')
    .replace(/\*\/$/, '')
    .split('\n')
  return lines
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .join(' ')
    .trim()
}

function code(text) {
  return `\`${text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')}\``
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** The members of an object type; of a union those of each of its objects, once. */
function propertiesOf(type) {
  const found = new Map()
  const forms = (type.isUnion() ? type.types : [type]).filter(
    (form) => form.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection),
  )
  for (const form of forms) {
    for (const property of checker.getPropertiesOfType(form)) {
      const [declaration] = property.declarations ?? []
      if (declaration === undefined || !isOurs(declaration)) continue
      // Members that another form must not have.
      if (declaration.type?.kind === ts.SyntaxKind.UndefinedKeyword) continue
      const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0
      const inForms = (found.get(property.name)?.inForms ?? 0) + 1
      found.set(property.name, { property, declaration, isOptional, inForms })
    }
  }
  return [...found.values()].map((each) => ({ ...each, isInAll: each.inForms === forms.length }))
}

function typeText(declaration) {
  const type = ts.isMethodSignature(declaration)
    ? `(${declaration.parameters.map((each) => each.getText()).join(', ')}) => ${declaration.type?.getText()}`
    : (declaration.type?.getText() ?? '')
  return type.replace(/\s*\| undefined$/, '').replace(/^\((.*)\)$/s, '$1')
}

function optionRows(type, name) {
  return propertiesOf(type).map(({ property, declaration, isOptional, isInAll }) => {
    const note = isOptional ? '' : isInAll ? ' (required)' : ' (one of these)'
    const doc = docOf(property, `${name}.${property.name}`)
    return [`${code(property.name)}${note}`, code(typeText(declaration)), doc]
  })
}

/** The forms of a type that is not an object alone: a path, a URL, an open client. */
function formsOf(symbol) {
  const node = symbol.declarations.find(ts.isTypeAliasDeclaration)?.type
  if (node === undefined || !ts.isUnionTypeNode(node)) return []
  return node.types
    .filter((part) => ts.isTypeReferenceNode(part) || ts.isToken(part))
    .map((part) => `- ${code(part.getText())}${commentBefore(part) === '' ? '' : `: ${commentBefore(part)}`}`)
}

function optionsSection([title, file, name]) {
  const symbol = exported(join(UMBRELLA, file), name)
  const rows = optionRows(checker.getDeclaredTypeOfSymbol(symbol), name)
  const forms = formsOf(symbol)
  const doc = docOf(symbol, name)
  return [`### ${code(title)}`, doc, forms.join('\n'), rows.length === 0 ? '' : table(['', '', ''], rows)]
}

function eventsSection([title, file]) {
  const fields = checker.getDeclaredTypeOfSymbol(exported(file, 'EventFields'))
  const rows = checker.getPropertiesOfType(fields).map((event) => {
    const carried = checker.getPropertiesOfType(checker.getTypeOfSymbol(event)).map(({ name }) => name)
    return [code(event.name), carried.map(code).join(', '), docOf(event, `event ${event.name}`)]
  })
  return [`### ${title}`, table(['', '', ''], rows)]
}

/** What its constructor hands to `DurablyError`. */
function codesOf(declaration) {
  const constructor = declaration.members.find(ts.isConstructorDeclaration)
  const call = constructor?.body?.statements.find((each) => each.getText().startsWith('super('))?.expression
  if (call === undefined) return []
  const type = checker.getTypeAtLocation(call.arguments[0])
  const literals = (type.isUnion() ? type.types : [type]).filter((each) => each.isStringLiteral())
  if (literals.length > 0) return literals.map(({ value }) => value)
  return [...call.arguments[0].getText().matchAll(/'([A-Z_]+)'/g)].map(([, value]) => value)
}

function errorsSection([title, ...files]) {
  const classes = files
    .flatMap((file) => program.getSourceFile(file).statements.filter(ts.isClassDeclaration))
    .filter(({ name }) => name.text.endsWith('Error'))
  const rows = classes.map((declaration) => {
    const symbol = checker.getSymbolAtLocation(declaration.name)
    return [code(declaration.name.text), codesOf(declaration).map(code).join(' '), docOf(symbol, declaration.name.text)]
  })
  return [title === '' ? '' : `### ${title}`, table(['', '`code`', ''], rows)]
}

function storageCodes() {
  const source = program.getSourceFile(join(CORE, 'base', 'storage-errors.ts'))
  const alias = source.statements.find(
    (each) => ts.isTypeAliasDeclaration(each) && each.name.text === 'StorageErrorCode',
  )
  const rows = alias.type.types.map((part) => {
    const doc = commentBefore(part)
    if (doc === '') missing.push(`StorageErrorCode ${part.getText()}`)
    return [code(part.getText().slice(1, -1)), doc]
  })
  return ['### The codes of `StorageError`', table(['', ''], rows)]
}

/** The page, and what has no doc comment. */
export function reference() {
  const parts = [
    '# Reference',
    'All options, events and errors. Made from the doc comments of the sources by `npm run reference`.',
    '## Options',
    ...OPTIONS.flatMap(optionsSection),
    '## Events',
    'Each has a `type`, a `timestamp` and a `sequence` (the order in this process); stored ones have a `seq` (their number in the run).',
    ...EVENTS.flatMap(eventsSection),
    '## Errors',
    'All of them are `DurablyError`s with a `code` that does not change; the message says what, which id, and what to do.',
    ...ERRORS.flatMap(errorsSection),
    ...storageCodes(),
  ]
  return { text: `${parts.filter((part) => part !== '').join('\n\n')}\n`, missing: [...new Set(missing)] }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { text, missing: undocumented } = reference()
  writeFileSync(PAGE, text)
  if (undocumented.length > 0) {
    console.error(`Without a doc comment:\n${undocumented.join('\n')}`)
    process.exitCode = 1
  }
}

/** What is committed. */
export function committedReference() {
  return readFileSync(PAGE, 'utf8')
}
